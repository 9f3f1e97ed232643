"""The SQL of identity: trust, outcomes and follow-up work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Statements

_SQL = Statements("prw_resolver.identity")


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """What became of one record of a capture."""

    capture_id: str
    record_id: str
    outcome: str
    case_id: str | None = None
    code: str | None = None


async def trusted(conn: Connection, scope: Scope, source_id: str) -> bool:
    """Whether the source may introduce items by rule; one that is not known is not trusted."""
    rows = await _SQL.rows(conn, "trusted", tenant_id=scope.tenant_id, source_id=source_id)
    return bool(rows and rows[0]["trusted_to_introduce"])


async def outcomes(
    conn: Connection, tenant_id: str, capture_ids: Iterable[str]
) -> list[StoredOutcome]:
    """The outcomes of the records of these captures."""
    rows = await _SQL.rows(conn, "outcomes", tenant_id=tenant_id, capture_ids=list(capture_ids))
    return [StoredOutcome(**row) for row in rows]


async def follow_ups_due(conn: Connection) -> list[Scope]:
    """The catalogues that have follow-up work, whosever they are."""
    return [Scope(**row) for row in await _SQL.rows(conn, "follow_ups_due")]
