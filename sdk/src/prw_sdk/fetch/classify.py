"""Telling the pages that a site puts in a page's place: a soft 404, a consent wall, a bot challenge, a login page.

Conservative on purpose, since a page taken for one of these is a listing lost: a page with product markup is none of
them, a word in the running text decides nothing, and whatever is left in doubt is a page. A source whose pages are
misjudged all the same can switch a rule off (`NetConfig.rules_off`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cached_property
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
        look = _Look(page)
        is_challenge = _is_marked(page)
        if not is_challenge and look.is_fine and look.has_product_plainly:
            return None
        if is_challenge or (not (is_raw and look.is_fine) and _says_challenge(look)):
            return None if Rule.BOT_CHALLENGE in self._off else Outcome.BOT_CHALLENGE
        if not look.is_fine or not look.is_html:
            return None
        for rule in (_moved(page), None if is_raw else _told(look)):
            if rule is not None and rule not in self._off and not look.has_product:
                return rule.outcome
        return None


class _Look:
    """The page in lower case, read no further than somebody needs."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.is_fine = 200 <= page.status < 300
        self.is_html = _is_html(page)

    @cached_property
    def low(self) -> bytes:
        """What stands there, in lower case."""
        return self.page.body[:_MOST].lower()

    @cached_property
    def has_product(self) -> bool:
        """Whether a product is marked up."""
        return wording.PRODUCT.search(self.low) is not None

    @property
    def has_product_plainly(self) -> bool:
        """Whether a product is marked up in one of the usual spellings, which is quicker to tell."""
        return wording.has_any(wording.PLAIN_PRODUCT, self.low)

    @cached_property
    def title(self) -> str:
        """The title."""
        return _first(wording.TITLE, self.low)

    @cached_property
    def heading(self) -> str:
        """The first heading."""
        return _first(wording.HEADING, self.low)

    @cached_property
    def text(self) -> str:
        """What a reader would see."""
        return wording.plain(self.low)

    @property
    def is_short(self) -> bool:
        """Whether a reader would see little more than a message."""
        return len(self.text) <= _LITTLE_TEXT


def _first(pattern: re.Pattern[bytes], low: bytes) -> str:
    found = pattern.search(low)
    return "" if found is None else wording.plain(found[1])


def _is_html(page: Page) -> bool:
    kind = page.media_type
    return "html" in kind or (
        kind in ("", "text/plain", "application/octet-stream")
        and page.body[:512].lstrip()[:9].lower() in (b"<!doctype", b"<html")
    )


def _is_marked(page: Page) -> bool:
    """Whether headers or the address reached say that it is a challenge."""
    headers = page.headers
    if (headers.get("cf-mitigated") or "").lower() == "challenge":
        return True
    if (headers.get("x-amzn-waf-action") or "").lower() in ("challenge", "captcha"):
        return True
    moved = page.asked != page.reached
    return moved and bool(wording.WAITING_HOST.search(urlsplit(page.reached).hostname or ""))


def _says_challenge(look: _Look) -> bool:
    status = look.page.status
    if status in _REFUSING and wording.has_any(wording.REFUSAL, look.low):
        return True
    if not (look.is_fine or status in _HINDERING) or not look.is_html:
        return False
    if len(look.page.body) > _SMALL_PAGE or not _hints_at_challenge(look):
        return False
    return not look.has_product and look.is_short


def _hints_at_challenge(look: _Look) -> bool:
    """A mark, a title, or a widget with words that say what it is for (that of a contact form has others)."""
    if wording.CHALLENGE_TITLE.fullmatch(look.title):
        return True
    if not wording.has_any(wording.HINTS, look.low):
        return False
    if wording.has_any(wording.CHALLENGE, look.low):
        return True
    is_widget = wording.has_any(wording.WIDGET, look.low)
    return is_widget and wording.PROVE_HUMAN.search(look.text) is not None


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
    heads = tuple(head for head in (look.title, look.heading) if head)
    missing = sum(wording.MISSING.search(head) is not None for head in heads)
    if missing > 1 or (missing and look.is_short):
        return Rule.SOFT_NOT_FOUND
    if any(wording.LOGIN.fullmatch(head) for head in heads) and look.is_short:
        return Rule.LOGIN_PAGE if wording.PASSWORD.search(look.low) else None
    if any(wording.CONSENT.search(head) for head in heads) and look.is_short:
        return Rule.CONSENT_WALL
    return None
