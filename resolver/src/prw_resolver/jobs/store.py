"""SQL of the inbox, of failures, and of deferring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from prw_base.server.sql import load
from prw_resolver.jobs.model import (
    MOST_FAILURES,
    QUEUE,
    DeadLetter,
    Failure,
    ResolveJob,
    Stage,
    StageState,
    as_text,
)

_SQL: Final = load("prw_resolver.jobs")
_SWEEP: Final = 0x5052_5710


async def _rows(conn: AsyncConnection[Any], name: str, **values: object) -> list[dict[str, Any]]:
    cursor = conn.cursor(row_factory=dict_row)
    await cursor.execute(_SQL[name].encode(), values)
    return await cursor.fetchall() if cursor.description else []


def _ids(job: ResolveJob) -> dict[str, object]:
    return {
        "tenant_id": job.tenant_id,
        "catalog_id": job.catalog_id,
        "capture_id": job.capture_id,
        "attempt_group": job.attempt_group,
    }


async def defer(conn: AsyncConnection[Any], job: ResolveJob) -> bool:
    """Enqueue; False where such a job waits already."""
    return bool(await _rows(conn, "defer", queue=QUEUE, **_ids(job)))


async def done_stages(conn: AsyncConnection[Any], job: ResolveJob) -> frozenset[Stage]:
    """The stages that the job's attempt group has done."""
    return frozenset(Stage(row["stage"]) for row in await _rows(conn, "done_stages", **_ids(job)))


async def mark_done(conn: AsyncConnection[Any], tenant_id: str, job_id: str) -> bool:
    """Write an inbox row; False where it was there."""
    return bool(await _rows(conn, "mark_done", tenant_id=tenant_id, job_id=job_id))


async def fail(conn: AsyncConnection[Any], job: ResolveJob, failure: Failure) -> tuple[int, bool]:
    """Count a failure; answers how many there are now, and whether the stage is a dead letter."""
    [row] = await _rows(
        conn,
        "fail",
        stage=failure.stage,
        code=failure.code,
        detail=as_text(failure.detail),
        final=not failure.retryable,
        most=MOST_FAILURES,
        **_ids(job),
    )
    return row["failures"], row["dead"]


async def stage_states(
    conn: AsyncConnection[Any], capture_ids: Sequence[str]
) -> Mapping[str, StageState]:
    """How far each named capture of the transaction's tenant has come."""
    rows = await _rows(conn, "stage_states", capture_ids=list(capture_ids))
    return {
        row["capture_id"]: StageState(frozenset(map(Stage, row["done"])), row["dead_code"])
        for row in rows
    }


async def dead_letters(
    conn: AsyncConnection[Any], tenant_id: str, capture_id: str | None, most: int
) -> tuple[DeadLetter, ...]:
    """Open dead letters, oldest first."""
    rows = await _rows(conn, "dead_letters", tenant_id=tenant_id, capture_id=capture_id, most=most)
    return tuple(DeadLetter(**row | {"stage": Stage(row["stage"])}) for row in rows)


async def take_up(conn: AsyncConnection[Any], letter: DeadLetter) -> ResolveJob | None:
    """Close a dead letter in favour of a new attempt group; None where another did."""
    ids = {
        "tenant_id": letter.tenant_id,
        "capture_id": letter.capture_id,
        "attempt_group": letter.attempt_group,
    }
    [row] = await _rows(conn, "next_group", **ids)
    group: int = row["attempt_group"]
    if not await _rows(conn, "take_up", new_group=group, stage=letter.stage, **ids):
        return None
    await _rows(conn, "carry_over", new_group=group, **ids)
    return ResolveJob(letter.tenant_id, letter.catalog_id, letter.capture_id, group)


async def without_job(
    conn: AsyncConnection[Any], age: timedelta, most: int
) -> tuple[ResolveJob, ...]:
    """Captures older than `age`, of every tenant, that are not done and that no job works on."""
    rows = await _rows(conn, "without_job", age=age, most=most)
    return tuple(ResolveJob(**row) for row in rows)


async def try_sweep(conn: AsyncConnection[Any]) -> bool:
    """Whether this transaction is the one that sweeps now; it stays so until its end."""
    [row] = await _rows(conn, "try_sweep", key=_SWEEP)
    return bool(row["mine"])


async def waiting(conn: AsyncConnection[Any]) -> tuple[int, int]:
    """How many jobs wait, and how many are worked on."""
    [row] = await _rows(conn, "waiting")
    return row["waiting"], row["working"]
