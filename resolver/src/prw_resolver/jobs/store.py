"""SQL of the inbox, of failures, and of deferring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from prw_base.server.database import Connection
from prw_base.server.sql import Statements
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

_SQL = Statements("prw_resolver.jobs")
_SWEEP: Final = 0x5052_5710


def _ids(job: ResolveJob) -> dict[str, object]:
    return {
        "tenant_id": job.tenant_id,
        "catalog_id": job.catalog_id,
        "capture_id": job.capture_id,
        "attempt_group": job.attempt_group,
    }


async def defer(conn: Connection, job: ResolveJob) -> bool:
    """Enqueue; False where such a job waits already."""
    return bool(await _SQL.rows(conn, "defer", queue=QUEUE, **_ids(job)))


async def done_stages(conn: Connection, job: ResolveJob) -> frozenset[Stage]:
    """The stages that the job's attempt group has done."""
    return frozenset(
        Stage(row["stage"]) for row in await _SQL.rows(conn, "done_stages", **_ids(job))
    )


async def mark_done(conn: Connection, tenant_id: str, job_id: str) -> bool:
    """Write an inbox row; False where it was there."""
    return bool(await _SQL.rows(conn, "mark_done", tenant_id=tenant_id, job_id=job_id))


async def fail(conn: Connection, job: ResolveJob, failure: Failure) -> tuple[int, bool]:
    """Count a failure; answers how many there are now, and whether the stage is a dead letter."""
    [row] = await _SQL.rows(
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


async def stage_states(conn: Connection, capture_ids: Sequence[str]) -> Mapping[str, StageState]:
    """How far each named capture of the transaction's tenant has come."""
    rows = await _SQL.rows(conn, "stage_states", capture_ids=list(capture_ids))
    return {
        row["capture_id"]: StageState(frozenset(map(Stage, row["done"])), row["dead_code"])
        for row in rows
    }


async def dead_letters(
    conn: Connection, tenant_id: str, capture_id: str | None, most: int
) -> tuple[DeadLetter, ...]:
    """Open dead letters, oldest first."""
    rows = await _SQL.rows(
        conn, "dead_letters", tenant_id=tenant_id, capture_id=capture_id, most=most
    )
    return tuple(DeadLetter(**row | {"stage": Stage(row["stage"])}) for row in rows)


async def take_up(conn: Connection, letter: DeadLetter) -> ResolveJob | None:
    """Close a dead letter in favour of a new attempt group; None where another did."""
    ids = {
        "tenant_id": letter.tenant_id,
        "capture_id": letter.capture_id,
        "attempt_group": letter.attempt_group,
    }
    [row] = await _SQL.rows(conn, "next_group", **ids)
    group: int = row["attempt_group"]
    if not await _SQL.rows(conn, "take_up", new_group=group, stage=letter.stage, **ids):
        return None
    await _SQL.rows(conn, "carry_over", new_group=group, **ids)
    return ResolveJob(letter.tenant_id, letter.catalog_id, letter.capture_id, group)


async def without_job(conn: Connection, age: timedelta, most: int) -> tuple[ResolveJob, ...]:
    """Captures older than `age`, of every tenant, that are not done and that no job works on."""
    rows = await _SQL.rows(conn, "without_job", age=age, most=most)
    return tuple(ResolveJob(**row) for row in rows)


async def try_sweep(conn: Connection) -> bool:
    """Whether this transaction is the one that sweeps now; it stays so until its end."""
    [row] = await _SQL.rows(conn, "try_sweep", key=_SWEEP)
    return bool(row["mine"])


async def waiting(conn: Connection) -> tuple[int, int]:
    """How many jobs wait, and how many are worked on."""
    [row] = await _SQL.rows(conn, "waiting")
    return row["waiting"], row["working"]
