"""Making a part of an answer: what is kept of it, and what of it is not to be seen."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from prw_sdk.evidence import Citation, Part
from prw_sdk.fetch import charset
from prw_sdk.fetch.answer import Headers
from prw_sdk.fetch.redact import Redactor

KEPT_HEADERS = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "link",
    "x-robots-tag",
    "x-wp-total",
    "x-wp-totalpages",
)
_LONGEST_HEADER = 8192
_LONGEST_MEDIA_TYPE = 255
_LARGE = 256 * 1024
_AT_ONCE = 2047
_NO_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Page:
    """An answer at the end of its redirects: the address asked for and the one reached, and the decoded body."""

    asked: str
    reached: str
    status: int
    headers: Headers
    body: bytes
    fetched_at: datetime
    served: str = field(init=False)
    """The media type as served, with its parameters."""
    media_type: str = field(init=False)
    """The media type alone, in lower case."""

    def __post_init__(self) -> None:
        served = next(iter(self.headers.all("content-type")), "") or _NO_TYPE
        object.__setattr__(self, "served", served)
        object.__setattr__(self, "media_type", served.partition(";")[0].strip().lower())


def to_part(page: Page, role: str, redact: Redactor) -> Part:
    """The page as a part of that role."""
    label = charset.declared(page.served, page.body, page.media_type)
    return Part(
        role=role,
        sha256=digest(page.body),
        body=page.body,
        media_type=redact.text(page.served)[:_LONGEST_MEDIA_TYPE],
        url_asked=redact.url(page.asked),
        url_reached=redact.url(page.reached),
        http_status=page.status,
        fetched_at=page.fetched_at,
        charset_declared=label,
        charset_used=charset.used(label, page.body, page.media_type),
        headers=_kept(page.headers, redact),
    )


def to_page(part: Part) -> Page:
    """The page that a part was made of, as far as it was kept."""
    headers = Headers.of((("content-type", part.media_type), *part.headers))
    return Page(
        part.url_asked, part.url_reached, part.http_status, headers, part.body, part.fetched_at
    )


def citing(page: Page, role: str, earlier: Part, redact: Redactor) -> Part:
    """The part of a 304: the earlier bytes, cited, under what the answer says of them now (RFC 9111, section 3.2)."""
    now = _kept(page.headers, redact)
    said = {name for name, _ in now}
    return Part(
        role=role,
        sha256=earlier.sha256,
        body=earlier.body,
        media_type=earlier.media_type,
        url_asked=redact.url(page.asked),
        url_reached=redact.url(page.reached),
        http_status=page.status,
        fetched_at=page.fetched_at,
        charset_declared=earlier.charset_declared,
        charset_used=earlier.charset_used,
        headers=_ordered([*now, *(one for one in earlier.headers if one[0] not in said)]),
        cites=earlier.cites or Citation(earlier.fetched_at, earlier.sha256),
    )


def digest(body: bytes) -> str:
    """SHA-256 in lower-case hex.

    Python lets other threads run while it hashes more than two kilobytes at once, and a page's few microseconds would
    then wait for theirs; only a large body is worth that.
    """
    if len(body) > _LARGE:
        return hashlib.sha256(body).hexdigest()
    found = hashlib.sha256()
    for start in range(0, len(body), _AT_ONCE):
        found.update(body[start : start + _AT_ONCE])
    return found.hexdigest()


def _kept(headers: Headers, redact: Redactor) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, redact.text(headers.get(name) or "")[:_LONGEST_HEADER])
        for name in KEPT_HEADERS
        if name in headers
    )


def _ordered(headers: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(headers))
