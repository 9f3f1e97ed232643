"""The SQL of identity: trust, outcomes and follow-up work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from prw_base.server.sql import load
from prw_resolver.catalog.store import Scope

SQL = load("prw_resolver.identity", "store.sql")


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """What became of one record of a capture."""

    capture_id: str
    record_id: str
    outcome: str
    case_id: str | None
    code: str | None


async def _rows(
    conn: AsyncConnection[Any], name: str, **parameters: object
) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL[name], parameters)
        return await cursor.fetchall()


async def trusted(conn: AsyncConnection[Any], scope: Scope, source_id: str) -> bool:
    """Whether the source may introduce items by rule; one that is not known is not trusted."""
    rows = await _rows(conn, "trusted", tenant_id=scope.tenant_id, source_id=source_id)
    return bool(rows and rows[0]["trusted_to_introduce"])


async def outcomes(
    conn: AsyncConnection[Any], tenant_id: str, capture_ids: Iterable[str]
) -> list[StoredOutcome]:
    """The outcomes of the records of these captures."""
    rows = await _rows(conn, "outcomes", tenant_id=tenant_id, capture_ids=list(capture_ids))
    return [StoredOutcome(**row) for row in rows]


async def follow_ups_due(conn: AsyncConnection[Any]) -> list[Scope]:
    """The catalogues that have follow-up work, whosever they are."""
    return [Scope(**row) for row in await _rows(conn, "follow_ups_due")]
