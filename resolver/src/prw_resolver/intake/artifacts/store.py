"""The SQL of many artifacts at once."""

from __future__ import annotations

from collections.abc import Sequence

from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.objects.model import ObjectMeta

_SQL = Statements("prw_resolver.intake.artifacts")


async def find(conn: Connection, tenant_id: str, digests: Sequence[str]) -> dict[str, ObjectMeta]:
    """The metadata of those of `digests` that are stored."""
    rows = await _SQL.rows(conn, "find", tenant_id=tenant_id, digests=list(digests))
    return {
        row["sha256"]: ObjectMeta(row["sha256"], row["bytes"], row["media_type"]) for row in rows
    }


async def add(conn: Connection, tenant_id: str, metas: Sequence[ObjectMeta]) -> None:
    """Record that bytes are durable; twice is once."""
    # In one order for everybody, so that two streams with the same pages wait for each other and never in a circle.
    ordered = sorted(metas, key=lambda meta: meta.sha256)
    await _SQL.rows(
        conn,
        "add",
        tenant_id=tenant_id,
        digests=[meta.sha256 for meta in ordered],
        sizes=[meta.size for meta in ordered],
        media_types=[meta.media_type for meta in ordered],
    )
