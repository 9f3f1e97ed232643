"""The SQL of cases and decisions: reads only. They are written by `resolver.stream_commit` alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.review.model import (
    CANDIDATES,
    Case,
    CaseKind,
    CaseStatus,
    HistoryEntry,
    Settled,
)
from prw_resolver.stream.model import Action, Wake
from prw_resolver.vocabulary.stored import quotes_from_json, record_from_json

_SQL = Statements("prw_resolver.review")
BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), "")


async def case(conn: Connection, scope: Scope, case_id: str) -> Case | None:
    """The case, or None."""
    rows = await _SQL.rows(conn, "case", **scope.ids, case_id=case_id)
    return _case(rows[0]) if rows else None


async def is_elsewhere(conn: Connection, scope: Scope, case_id: str) -> bool:
    """Whether the case is another tenant's."""
    return bool(
        (await _SQL.rows(conn, "case_elsewhere", **scope.ids, case_id=case_id))[0]["elsewhere"]
    )


async def open_case(conn: Connection, scope: Scope, listing_id: str) -> Case | None:
    """The open case about a listing, or None."""
    rows = await _SQL.rows(conn, "open_case", **scope.ids, listing_id=listing_id)
    return _case(rows[0]) if rows else None


async def settled(
    conn: Connection, scope: Scope, listing_id: str, *, retraction: bool = False
) -> Settled | None:
    """A person's last word on what a listing is, or with `retraction` on whether it is gone; or None."""
    rows = await _SQL.rows(
        conn, "settled", **scope.ids, listing_id=listing_id, retraction=retraction
    )
    if not rows:
        return None
    return Settled(**{**rows[0], "action": Action(rows[0]["action"])})


async def cases(
    conn: Connection,
    scope: Scope,
    *,
    status: CaseStatus | None,
    kind: CaseKind | None,
    after: tuple[datetime, str] = BEGINNING,
    limit: int,
) -> list[Case]:
    """Cases of the catalogue by age."""
    rows = await _SQL.rows(
        conn,
        "list",
        **scope.ids,
        status=None if status is None else status.value,
        kind=None if kind is None else kind.value,
        after_opened_at=after[0],
        after_case_id=after[1],
        limit=limit,
    )
    return [_case(row) for row in rows]


async def history(conn: Connection, scope: Scope, case_id: str) -> tuple[HistoryEntry, ...]:
    """The decisions taken on a case, oldest first."""
    return tuple(
        HistoryEntry(**row)
        for row in await _SQL.rows(conn, "history", **scope.ids, case_id=case_id)
    )


async def woken(conn: Connection, scope: Scope, limit: int) -> list[Wake]:
    """Cases to be identified again."""
    return [Wake(**row) for row in await _SQL.rows(conn, "woken", **scope.ids, limit=limit)]


async def unwake(conn: Connection, scope: Scope, wake: Wake) -> None:
    """Note that a wake-up needs no work."""
    await _SQL.rows(conn, "unwake", **scope.ids, case_id=wake.case_id, touched=wake.touched)


def _case(row: Mapping[str, Any]) -> Case:
    return Case(
        **{
            **row,
            "kind": CaseKind(row["kind"]),
            "status": CaseStatus(row["status"]),
            "record": record_from_json(row["record"]),
            "candidates": CANDIDATES.validate_python(row["candidates"]),
            "evidence": quotes_from_json(row["evidence"]),
        }
    )
