"""Parts made by hand, for tests that read."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from prw_sdk.evidence import Part

NOON = datetime(2026, 10, 10, 12, 0, tzinfo=UTC)


def part_of(html: str, url: str = "https://lumenparts.example/p/1") -> Part:
    """A page as one part, role ``page``."""
    body = html.encode()
    return Part(
        role="page",
        sha256=hashlib.sha256(body).hexdigest(),
        body=body,
        media_type="text/html; charset=utf-8",
        url_asked=url,
        url_reached=url,
        http_status=200,
        fetched_at=NOON,
        charset_declared="utf-8",
        charset_used="utf-8",
    )
