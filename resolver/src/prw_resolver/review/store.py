"""The SQL of cases and decisions: reads only. They are written by `resolver.stream_commit` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from prw_base.server.sql import load
from prw_resolver.catalog.store import Scope
from prw_resolver.review.model import (
    CANDIDATES,
    QUOTES,
    RECORDS,
    Case,
    CaseKind,
    CaseStatus,
    HistoryEntry,
)
from prw_resolver.stream.model import Action, Wake

SQL = load("prw_resolver.review", "store.sql")
BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), "")


@dataclass(frozen=True, slots=True)
class Settlement:
    """A person's last word on a listing."""

    action: Action
    evidence_digest: str
    decision_id: str
    observed_at: datetime


async def _rows(
    conn: AsyncConnection[Any], name: str, scope: Scope, **parameters: object
) -> list[dict[str, Any]]:
    parameters |= {"tenant_id": scope.tenant_id, "catalog_id": scope.catalog_id}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL[name], parameters)
        return await cursor.fetchall() if cursor.description else []


async def case(conn: AsyncConnection[Any], scope: Scope, case_id: str) -> Case | None:
    """The case, or None."""
    rows = await _rows(conn, "case", scope, case_id=case_id)
    return _case(rows[0]) if rows else None


async def is_elsewhere(conn: AsyncConnection[Any], scope: Scope, case_id: str) -> bool:
    """Whether the case is another tenant's."""
    return bool((await _rows(conn, "case_elsewhere", scope, case_id=case_id))[0]["elsewhere"])


async def open_case(conn: AsyncConnection[Any], scope: Scope, listing_id: str) -> Case | None:
    """The open case about a listing, or None."""
    rows = await _rows(conn, "open_case", scope, listing_id=listing_id)
    return _case(rows[0]) if rows else None


async def settled(
    conn: AsyncConnection[Any], scope: Scope, listing_id: str, *, retraction: bool = False
) -> Settlement | None:
    """A person's last word on what a listing is, or with `retraction` on whether it is gone; or None."""
    rows = await _rows(conn, "settled", scope, listing_id=listing_id, retraction=retraction)
    if not rows:
        return None
    return Settlement(**{**rows[0], "action": Action(rows[0]["action"])})


async def cases(
    conn: AsyncConnection[Any],
    scope: Scope,
    *,
    status: CaseStatus | None,
    kind: CaseKind | None,
    after: tuple[datetime, str] = BEGINNING,
    limit: int,
) -> list[Case]:
    """Cases of the catalogue by age."""
    rows = await _rows(
        conn,
        "list",
        scope,
        status=None if status is None else status.value,
        kind=None if kind is None else kind.value,
        after_opened_at=after[0],
        after_case_id=after[1],
        limit=limit,
    )
    return [_case(row) for row in rows]


async def history(
    conn: AsyncConnection[Any], scope: Scope, case_id: str
) -> tuple[HistoryEntry, ...]:
    """The decisions taken on a case, oldest first."""
    return tuple(
        HistoryEntry(**row) for row in await _rows(conn, "history", scope, case_id=case_id)
    )


async def woken(conn: AsyncConnection[Any], scope: Scope, limit: int) -> list[Wake]:
    """Cases to be identified again."""
    return [Wake(**row) for row in await _rows(conn, "woken", scope, limit=limit)]


async def unwake(conn: AsyncConnection[Any], scope: Scope, wake: Wake) -> None:
    """Note that a wake-up needs no work."""
    await _rows(conn, "unwake", scope, case_id=wake.case_id, touched=wake.touched)


def _case(row: Mapping[str, Any]) -> Case:
    return Case(
        **{
            **row,
            "kind": CaseKind(row["kind"]),
            "status": CaseStatus(row["status"]),
            "record": RECORDS.validate_python(row["record"], strict=False),
            "candidates": CANDIDATES.validate_python(row["candidates"], strict=False),
            "evidence": QUOTES.validate_python(row["evidence"], strict=False),
        }
    )
