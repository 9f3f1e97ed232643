"""What the pages of one run have in common: scripts, styles, fonts and pictures, asked for once while they are fresh.

Each page has a context without a cache, so that nothing of one visit is in the next; without this a shop would be asked
for the same scripts with every product. Only what its own headers allow to keep is kept (RFC 9111), in memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from prw_sdk.fetch.browser_rules import Asked
from prw_sdk.fetch.rendering import Fetches, Resource

_KEPT = frozenset({"script", "stylesheet", "font", "image"})
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,9})")
_NEVER = re.compile(r"(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])")
_LONGEST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Held:
    resource: Resource
    until: datetime


class Shelf:
    """Answers by source and address, up to `most` bytes in all; what is full takes nothing more."""

    def __init__(self, most: int = 64 * 1024 * 1024) -> None:
        self._most = most
        self._bytes = 0
        self._held: dict[tuple[Fetches, str], _Held] = {}

    def find(self, source: Fetches, asked: Asked) -> Resource | None:
        """The answer that is still fresh."""
        held = self._held.get((source, asked.url)) if asked.kind in _KEPT else None
        return held.resource if held is not None and held.until > datetime.now(UTC) else None

    def put(self, source: Fetches, asked: Asked, found: Resource) -> None:
        """Keep an answer, where its headers say that it may be and for how long."""
        fresh = freshness(found) if asked.kind in _KEPT and found.status == 200 else timedelta()
        if not fresh or self._bytes + len(found.body) > self._most:
            return
        former = self._held.get((source, asked.url))
        self._bytes += len(found.body) - (0 if former is None else len(former.resource.body))
        self._held[source, asked.url] = _Held(found, found.fetched_at + fresh)


def freshness(found: Resource) -> timedelta:
    """How long an answer may be used again: by its ``max-age`` alone, and no longer than an hour."""
    told = {name.lower(): value.lower() for name, value in found.headers}
    control, varies = told.get("cache-control", ""), told.get("vary", "accept-encoding")
    age = _MAX_AGE.search(control)
    if age is None or _NEVER.search(control) or varies.strip() != "accept-encoding":
        return timedelta()
    return min(timedelta(seconds=int(age[1])), _LONGEST)
