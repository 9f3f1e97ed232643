"""Use cases of the queue: defer, tell how far captures have come, show dead letters and drive them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from prw_base.server.database import Connection, Database
from prw_resolver.jobs import store
from prw_resolver.jobs.model import DeadLetter, ResolveJob, StageState
from prw_resolver.jobs.wake import WAKE


async def defer_resolution(
    conn: AsyncConnection[Any],
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


async def stage_states(
    conn: AsyncConnection[Any], capture_ids: Sequence[str]
) -> Mapping[str, StageState]:
    """How far each of the named captures has come, for the tenant of the transaction."""
    return await store.stage_states(conn, capture_ids)


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
