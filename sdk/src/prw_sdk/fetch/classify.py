"""Telling the pages that a site puts in a page's place: a soft 404, a consent wall, a bot challenge, a login page.

Conservative on purpose, since a page taken for one of these is a listing lost: a page with product markup is none of
them, a word in the running text decides nothing, and whatever is left in doubt is a page. A source whose pages are
misjudged all the same can switch a rule off (`NetConfig.rules_off`).
"""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from prw_sdk.fetch import wording
from prw_sdk.fetch.outcome import Outcome
from prw_sdk.fetch.parting import Page

_MOST = 512 * 1024
_LITTLE_TEXT = 2500
_SMALL_PAGE = 96 * 1024
_REFUSING = frozenset({403, 405, 406, 429})
_HINDERING = _REFUSING | {401, 503}


class Rule(StrEnum):
    """A kind of page that is recognised, by the name that settings switch it off with."""

    SOFT_NOT_FOUND = "soft_not_found"
    CONSENT_WALL = "consent_wall"
    BOT_CHALLENGE = "bot_challenge"
    LOGIN_PAGE = "login_page"

    @property
    def outcome(self) -> Outcome:
        """How a fetch ends that met such a page."""
        return Outcome(self.value)


class Classifier:
    """Judges the pages of one source, without the rules that are switched off."""

    def __init__(self, off: frozenset[Rule] = frozenset()) -> None:
        self._off = off

    def outcome(self, page: Page, *, is_raw: bool = False) -> Outcome | None:
        """What stands in the page's place, or None for a page, or for an answer whose status says it all.

        With `is_raw` the page is one that a browser will still make something of: only status, headers and redirects
        are judged then.
        """
        if self._is_on(Rule.BOT_CHALLENGE) and _is_challenge(page, is_raw):
            return Outcome.BOT_CHALLENGE
        if not 200 <= page.status < 300 or not _is_html(page):
            return None
        return next((rule.outcome for rule in self._found(page, is_raw)), None)

    def _is_on(self, rule: Rule) -> bool:
        return rule not in self._off

    def _found(self, page: Page, is_raw: bool) -> list[Rule]:
        look = _Look(page)
        wanted = [rule for rule in (_moved(page), None if is_raw else _told(look)) if rule]
        found = [rule for rule in wanted if self._is_on(rule)]
        return [] if not found or look.has_product else found


class _Look:
    """The page in lower case, read no further than somebody needs."""

    def __init__(self, page: Page) -> None:
        self.low = page.body[:_MOST].lower()

    @property
    def has_product(self) -> bool:
        return wording.PRODUCT.search(self.low) is not None

    @property
    def heads(self) -> tuple[str, ...]:
        """The title and the first heading."""
        found = (pattern.search(self.low) for pattern in (wording.TITLE, wording.HEADING))
        return tuple(wording.plain(match[1]) for match in found if match is not None)

    @property
    def is_short(self) -> bool:
        """Whether a reader would see little more than a message."""
        return len(wording.plain(self.low)) <= _LITTLE_TEXT


def _is_html(page: Page) -> bool:
    kind = page.media_type
    return "html" in kind or (
        kind in ("", "text/plain", "application/octet-stream")
        and page.body[:512].lstrip()[:9].lower() in (b"<!doctype", b"<html")
    )


def _is_challenge(page: Page, is_raw: bool) -> bool:
    headers = page.headers
    if (headers.get("cf-mitigated") or "").lower() == "challenge":
        return True
    if (headers.get("x-amzn-waf-action") or "").lower() in ("challenge", "captcha"):
        return True
    if wording.WAITING_HOST.search(_host(page.reached)):
        return True
    if is_raw and 200 <= page.status < 300:
        return False
    return _says_challenge(page)


def _says_challenge(page: Page) -> bool:
    if page.status in _REFUSING and wording.has_any(wording.REFUSAL, page.body[:_MOST].lower()):
        return True
    if not (200 <= page.status < 300 or page.status in _HINDERING) or not _is_html(page):
        return False
    if len(page.body) > _SMALL_PAGE:
        return False
    look = _Look(page)
    if wording.has_any(wording.CHALLENGE, look.low):
        return look.is_short and not look.has_product
    # a widget (of a contact form, say) needs words that say what it is for
    return wording.has_any(wording.WIDGET, look.low) and _asks_to_prove(look)


def _asks_to_prove(look: _Look) -> bool:
    if look.has_product or not look.is_short:
        return False
    return wording.PROVE_HUMAN.search(wording.plain(look.low)) is not None


def _moved(page: Page) -> Rule | None:
    """What a redirect says by where it leads."""
    asked, reached = urlsplit(page.asked), urlsplit(page.reached)
    if (asked.netloc, asked.path) == (reached.netloc, reached.path):
        return None
    host, path = reached.hostname or "", reached.path.lower()
    if wording.CONSENT_PLACE.search(f"{host}{path}"):
        return Rule.CONSENT_WALL
    if _is_login(host, path) and not _is_login(asked.hostname or "", asked.path.lower()):
        return Rule.LOGIN_PAGE
    return Rule.SOFT_NOT_FOUND if _leads_off(asked.path.lower(), reached) else None


def _leads_off(asked: str, reached: SplitResult) -> bool:
    """Whether it leads to a page that says "not found", or from a page of the site to its front page."""
    path = reached.path.lower()
    if wording.MISSING_PATH.search(path):
        return wording.MISSING_PATH.search(asked) is None
    is_front = wording.FRONT_PATH.fullmatch(path) is not None and not reached.query
    return is_front and wording.FRONT_PATH.fullmatch(asked) is None


def _is_login(host: str, path: str) -> bool:
    return bool(wording.LOGIN_HOST.match(host) or wording.LOGIN_PATH.search(path))


def _told(look: _Look) -> Rule | None:
    """What title and first heading say, where that is all that the page says."""
    heads = look.heads
    missing = [head for head in heads if wording.MISSING.search(head)]
    if missing and (len(missing) > 1 or look.is_short):
        return Rule.SOFT_NOT_FOUND
    if any(wording.LOGIN.fullmatch(head) for head in heads) and look.is_short:
        return Rule.LOGIN_PAGE if wording.PASSWORD.search(look.low) else None
    if any(wording.CONSENT.search(head) for head in heads) and look.is_short:
        return Rule.CONSENT_WALL
    return None


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
