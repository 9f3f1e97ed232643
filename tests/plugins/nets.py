"""A network for tests of plans: it serves what it is given, and notes what was asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from prw_sdk.adapter import NO_RESPONSES, NetFailed
from prw_sdk.evidence import Part
from prw_sdk.fetch import charset


class Missing(NetFailed):
    """The source answers with that status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


class Pages:
    """Bodies or statuses by address; `moved` says which address another one leads to."""

    def __init__(
        self,
        bodies: Mapping[str, bytes | int],
        media_type: str = "application/xml",
        moved: Mapping[str, str] | None = None,
    ) -> None:
        self.bodies = dict(bodies)
        self.media_type = media_type
        self.moved = moved or {}
        self.headers: tuple[tuple[str, str], ...] = ()
        self.asked: list[str] = []

    async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
        """Serve a body, or fail with a status."""
        self.asked.append(url)
        reached = self.moved.get(url, url)
        body = self.bodies.get(reached, 404)
        if isinstance(body, int):
            raise Missing(body)
        return self._part(body, role, url, reached)

    async def render(
        self,
        url: str,
        *,
        role: str = "page",
        responses: Mapping[str, str] = NO_RESPONSES,
        wait_for: str | None = None,
    ) -> tuple[Part, ...]:
        """No plugin of these tests opens a browser."""
        raise AssertionError(f"a browser was opened for {url}")

    def _part(self, body: bytes, role: str, url: str, reached: str) -> Part:
        digest, now = hashlib.sha256(body).hexdigest(), datetime.now(UTC)
        used = charset.used(None, body, self.media_type)
        return Part(
            role,
            digest,
            body,
            self.media_type,
            url,
            reached,
            200,
            now,
            charset_used=used,
            headers=self.headers,
        )


def as_json(value: object) -> bytes:
    """A JSON body."""
    return json.dumps(value).encode()
