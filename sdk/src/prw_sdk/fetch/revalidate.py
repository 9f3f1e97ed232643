"""Asking whether an earlier answer still holds (RFC 9110, section 13)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from prw_sdk.evidence import Part
from prw_sdk.fetch.answer import Headers

NOT_MODIFIED = 304


def question(earlier: Part | None, url: str) -> Mapping[str, str]:
    """The headers that ask whether `earlier` still holds at `url` (redacted); none where it cannot be asked.

    Validators belong to the address that gave them. Bytes that are not the ones their digest names are never cited,
    so the page is asked for as a whole then.
    """
    if earlier is None or earlier.url_reached != url or earlier.http_status not in (200, 304):
        return {}
    if hashlib.sha256(earlier.body).hexdigest() != earlier.sha256:
        return {}
    known = dict(earlier.headers)
    asked = {"if-none-match": known.get("etag"), "if-modified-since": known.get("last-modified")}
    return {name: value for name, value in asked.items() if value}


def is_about(earlier: Part, headers: Headers) -> bool:
    """Whether a 304 confirms these very bytes: it names no validator, or the one that they were served with."""
    known = dict(earlier.headers)
    tag, before = headers.get("etag"), known.get("etag")
    if tag is not None and before is not None:
        return _opaque(tag) == _opaque(before)
    modified, then = headers.get("last-modified"), known.get("last-modified")
    return modified is None or then is None or modified == then


def _opaque(tag: str) -> str:
    return tag.strip().removeprefix("W/")
