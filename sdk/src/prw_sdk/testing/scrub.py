"""What a fixture may not hold: credentials, and what points to a person.

The recorder replaces what is found here, and the conformance suite fails on a fixture in which something is found.
Placeholders are found by neither. Addresses under reserved domains (``example.org``, RFC 2606) and telephone
numbers of a source's own imprint can be allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

from prw_sdk.evidence import Capture, Part

SECRET_HEADERS = frozenset(
    {"authorization", "cookie", "proxy-authorization", "set-cookie", "www-authenticate"}
    | {"x-api-key", "x-auth-token", "x-csrf-token", "x-amz-security-token"}
)
SCRUBBED = "scrubbed"
"""Stands for a value that was taken out."""

_TELLING = 12
"""A token of so many characters is nothing else where it stands elsewhere."""

_SECRET_NAME = (
    r"(?:access[_-]?|auth[_-]?|refresh[_-]?|id[_-]?|csrf[_-]?|xsrf[_-]?|session[_-]?|bearer[_-]?)?token"
    r"|api[_-]?key|apikey|client[_-]?secret|secret|password|passwd|pwd|session(?:[_-]?id)?|sid|phpsessid|jsessionid"
    r"|signature|sig|x-amz-[a-z-]+|auth|authorization|credential"
)
SECRET_QUERY = re.compile(rf"(?:{_SECRET_NAME})", re.IGNORECASE)
_RESERVED = re.compile(
    r"(?:^|[.@])(?:example\.(?:com|org|net)|[\w-]+\.(?:example|test|invalid))$", re.IGNORECASE
)
_NOT_AN_ADDRESS = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|css|js|mjs|json|woff2?)$|^[a-z]*@[\d.x]+\.", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Found:
    """Something that was found: what it is, where, and the text itself."""

    what: str
    where: str
    text: str

    def __str__(self) -> str:
        shown = f"{self.text[:3]}…{self.text[-2:]}"
        return f"{self.where}: {self.what} {shown!r}"


@dataclass(frozen=True, slots=True)
class _Rule:
    what: str
    pattern: re.Pattern[str]
    """Its group ``secret`` is what is taken out."""
    placeholder: str
    is_one: Callable[[str], bool] = bool


def _is_address(text: str) -> bool:
    return not _RESERVED.search(text) and not _NOT_AN_ADDRESS.search(text)


def _is_card(text: str) -> bool:
    """Whether the digits pass Luhn's check (ISO/IEC 7812) and begin as cards do."""
    digits = [int(one) for one in text if one.isdigit()]
    if not 15 <= len(digits) <= 16 or digits[0] not in (3, 4, 5):
        return False
    doubled = [
        d if at % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2)
        for at, d in enumerate(reversed(digits))
    ]
    return sum(doubled) % 10 == 0


def _is_secret(text: str) -> bool:
    """Whether a value beside a secret's name is one: not a placeholder, a word, or a setting."""
    return text != SCRUBBED and len(text) >= 8 and any(one.isdigit() for one in text)


_RULES = (
    _Rule(
        "an e-mail address",
        re.compile(
            r"(?<![\w.+%/-])(?P<secret>[\w.+%-]{1,64}@(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24})(?![\w/-])",
            re.IGNORECASE,
        ),
        "scrubbed@example.org",
        _is_address,
    ),
    _Rule(
        "a telephone number",
        re.compile(
            r"(?:tel:|(?:telephone|phone|telefon|tel\.?|fax)\W{1,6})(?P<secret>\+?\d[\d ()/.-]{6,20}\d)",
            re.IGNORECASE,
        ),
        "+1 555 0100",
        lambda text: sum(one.isdigit() for one in text) >= 7 and "555 01" not in text,
    ),
    _Rule(
        "an international telephone number",
        re.compile(r"(?<![\w+])(?P<secret>\+\d{1,3}[ (/.-]{1,2}\d[\d ()/.-]{5,18}\d)(?![\w])"),
        "+1 555 0100",
        lambda text: "555 01" not in text,
    ),
    _Rule(
        "a card number",
        re.compile(
            r"(?<![\w.,/=-])(?P<secret>[345]\d{3}([ -])\d{4}\2\d{4}\2\d{3,4}|3\d{3}[ -]\d{6}[ -]\d{5})(?![\w.,-])"
        ),
        "0000 0000 0000 0000",
        _is_card,
    ),
    _Rule(
        "a JSON web token",
        re.compile(r"(?P<secret>eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,})"),
        SCRUBBED,
    ),
    _Rule(
        "a bearer token",
        re.compile(r"\b(?:bearer|basic)\s+(?P<secret>[\w+/=.~-]{12,})", re.IGNORECASE),
        SCRUBBED,
        _is_secret,
    ),
    _Rule(
        "a token",
        re.compile(
            rf"""(?<![\w-])["']?(?:[\w-]{{0,20}}[_-])?(?:{_SECRET_NAME})["']?\s*[:=]\s*["'](?P<secret>[\w+/=.~%-]{{8,}})["']""",
            re.IGNORECASE,
        ),
        SCRUBBED,
        _is_secret,
    ),
    _Rule(
        "a token in a form",
        re.compile(
            rf"""name\s*=\s*["']?[\w-]{{0,20}}(?:{_SECRET_NAME})["']?[^<>]{{0,80}}?\b(?:value|content)\s*=\s*["'](?P<secret>[\w+/=.~%-]{{8,}})["']""",
            re.IGNORECASE,
        ),
        SCRUBBED,
        _is_secret,
    ),
    _Rule(
        "a token in an address",
        re.compile(
            rf"[?&;](?:amp;)?(?:{_SECRET_NAME})=(?P<secret>[^&\s\"'<>#\\]{{6,}})", re.IGNORECASE
        ),
        SCRUBBED,
        lambda text: text != SCRUBBED,
    ),
)


def findings(capture: Capture, allowed: Iterable[str] = ()) -> tuple[Found, ...]:
    """Everything in a capture that a fixture may not hold, but for the texts that are allowed."""
    kept = frozenset(allowed)
    return tuple(
        one
        for part in capture.parts
        for one in (*_in_headers(part), *_in_addresses(part), *_in_body(part))
        if one.text not in kept
    )


def scrubbed(capture: Capture, allowed: Iterable[str] = ()) -> Capture:
    """The capture with all of that replaced by placeholders, its digests made anew.

    A token is taken out wherever else its text stands, too.
    """
    kept = frozenset(allowed)
    tokens = {
        one.text
        for one in findings(capture, kept)
        if "token" in one.what and len(one.text) >= _TELLING
    }
    # the longest first, since one may be a piece of another
    ordered = sorted(tokens, key=lambda token: (-len(token), token))
    return replace(capture, parts=tuple(_scrubbed(part, kept, ordered) for part in capture.parts))


def _scrubbed(part: Part, allowed: frozenset[str], tokens: Iterable[str]) -> Part:
    def clean(text: str) -> str:
        text = replaced(text, allowed)
        for token in tokens:
            text = text.replace(token, SCRUBBED)
        return text

    body = part.body
    if _is_text(part):
        charset = part.charset_used or "utf-8"
        text = clean(body.decode(charset, errors="surrogateescape"))
        body = text.encode(charset, errors="surrogateescape")
    return replace(
        part,
        body=body,
        sha256=sha256(body).hexdigest(),
        url_asked=clean(part.url_asked),
        url_reached=clean(part.url_reached),
        headers=tuple(
            (name, clean(value))
            for name, value in part.headers
            if name.lower() not in SECRET_HEADERS
        ),
    )


def replaced(text: str, allowed: frozenset[str] = frozenset()) -> str:
    """A text with everything that a fixture may not hold replaced by a placeholder."""
    for rule in _RULES:
        text = rule.pattern.sub(partial(_without, rule=rule, allowed=allowed), text)
    return text


def _without(match: re.Match[str], *, rule: _Rule, allowed: frozenset[str]) -> str:
    secret = match["secret"]
    if secret in allowed or secret == rule.placeholder or not rule.is_one(secret):
        return match[0]
    start, end = match.span("secret")
    whole, begin = match[0], match.start()
    return whole[: start - begin] + rule.placeholder + whole[end - begin :]


def _in_headers(part: Part) -> Iterator[Found]:
    for name, value in part.headers:
        if name.lower() in SECRET_HEADERS:
            yield Found("a header", f"{part.role}, {name}", value)


def _in_addresses(part: Part) -> Iterator[Found]:
    for url in {part.url_asked: None, part.url_reached: None}:
        for name, value in parse_qsl(urlsplit(url).query):
            if SECRET_QUERY.fullmatch(name) and value != SCRUBBED:
                yield Found("a token in an address", f"{part.role}, {name}", value)


def _in_body(part: Part) -> Iterator[Found]:
    if not _is_text(part):
        return
    text = part.text()
    for rule in _RULES:
        for match in rule.pattern.finditer(text):
            secret = match["secret"]
            if secret != rule.placeholder and rule.is_one(secret):
                line = text.count("\n", 0, match.start()) + 1
                yield Found(rule.what, f"{part.role}, line {line}", secret)


def _is_text(part: Part) -> bool:
    return not part.media_type.lower().startswith(("image/", "video/", "audio/", "font/"))
