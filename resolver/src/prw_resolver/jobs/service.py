"""Use cases of the queue: defer, tell how far captures have come, show dead letters and drive them again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from prw_base.server.database import Connection, Database
from prw_resolver.jobs import store
from prw_resolver.jobs.model import DeadLetter, Failure, ResolveJob, Stage, StageState
from prw_resolver.jobs.wake import WAKE


async def defer_resolution(
    conn: Connection,
    *,
    tenant_id: str,
    catalog_id: str,
    capture_id: str,
    attempt_group: int = 0,
) -> bool:
    """Enqueue a capture's resolution in the caller's transaction; False where such a job waits already.

    Nothing is notified: call ``WAKE.set()`` after the commit, or let the poll find it.
    """
    return await store.defer(conn, ResolveJob(tenant_id, catalog_id, capture_id, attempt_group))


async def stage_states(conn: Connection, capture_ids: Sequence[str]) -> Mapping[str, StageState]:
    """How far each of the named captures has come, for the tenant of the transaction."""
    return await store.stage_states(conn, capture_ids)


async def done_stages(conn: Connection, job: ResolveJob) -> frozenset[Stage]:
    """The stages that the job's attempt group has behind it."""
    return await store.done_stages(conn, job)


async def mark_done(conn: Connection, job: ResolveJob, stage: Stage) -> bool:
    """Write a stage's inbox row in the caller's transaction; False where the stage was done by another delivery."""
    return await store.mark_done(conn, job.tenant_id, job.stage_id(stage))


async def count_failure(db: Database, job: ResolveJob, failure: Failure) -> tuple[int, bool]:
    """Count a failure of a stage; answers how many there are now, and whether it is a dead letter."""

    async def count(conn: Connection) -> tuple[int, bool]:
        return await store.fail(conn, job, failure)

    return await db.run(count, job.tenant_id)


async def dead_letters(
    db: Database, tenant_id: str, capture_id: str | None = None, most: int = 1000
) -> tuple[DeadLetter, ...]:
    """A tenant's open dead letters, oldest first: all of them, or those of one capture."""
    async with db.transaction(tenant_id, read_only=True) as conn:
        return await store.dead_letters(conn, tenant_id, capture_id, most)


async def redrive(
    db: Database, tenant_id: str, capture_id: str | None = None, most: int = 1000
) -> tuple[ResolveJob, ...]:
    """Take up dead letters under a new attempt group that starts at the stage that failed.

    Answers the jobs that wait now. A dead letter is taken up once, whoever asks how often.
    """

    async def take_up(conn: Connection) -> tuple[ResolveJob, ...]:
        letters = await store.dead_letters(conn, tenant_id, capture_id, most)
        taken = [await store.take_up(conn, letter) for letter in letters]
        jobs = tuple(job for job in taken if job is not None)
        for job in jobs:
            await store.defer(conn, job)
        return jobs

    jobs = await db.run(take_up, tenant_id)
    if jobs:
        WAKE.set()
    return jobs


async def waiting(conn: Connection) -> tuple[int, int]:
    """How many jobs wait and how many are worked on: the tenant's, or all where the transaction has none."""
    return await store.waiting(conn)


async def repair(db: Database, age: timedelta, most: int = 100) -> tuple[ResolveJob, ...]:
    """Enqueue captures older than `age` that are not done and that no job works on, of whatever tenant.

    Answers what was enqueued. Nothing is lost that intake committed, whatever became of its job.
    """
    async with db.transaction(None, read_only=True) as conn:
        found = await store.without_job(conn, age, most)
    for job in found:
        async with db.transaction(job.tenant_id) as conn:
            await store.defer(conn, job)
    if found:
        WAKE.set()
    return found


@asynccontextmanager
async def sweeping(db: Database) -> AsyncIterator[bool]:
    """True for the one program that may sweep the queue now, as long as the context lasts."""
    async with db.transaction(None) as conn:
        yield await store.try_sweep(conn)
