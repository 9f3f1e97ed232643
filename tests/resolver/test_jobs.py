"""The queue: deferring inside a transaction, the inbox, failures, dead letters (if_resolution_job)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib import resources
from typing import Any

import psycopg
import pytest

from prw_base.server.database import Database
from prw_resolver.access import service as access
from prw_resolver.jobs import service, store
from prw_resolver.jobs.model import (
    MOST_FAILURES,
    BadJob,
    Failure,
    ResolveJob,
    Stage,
    backoff,
)
from prw_resolver.jobs.queue import JobQueue
from prw_resolver.jobs.wake import Wake

TENANT, OTHER, CATALOG = "ten_synth_a", "ten_synth_b", "main"
JOB = ResolveJob(TENANT, CATALOG, "cap_1")
BROKEN = Failure(Stage.NORMALISE, "DB_UNAVAILABLE", "no answer", retryable=True)


@pytest.fixture
async def db(resolver_database: dict[str, str]) -> AsyncIterator[Database]:
    """A resolver's database with two tenants."""
    async with await Database.open(resolver_database["resolver_app"]) as database:
        for tenant in (TENANT, OTHER):
            await access.put_tenant(database, tenant, tenant)
            await access.put_catalog(database, tenant, CATALOG, CATALOG)
        yield database


async def defer(db: Database, job: ResolveJob = JOB) -> bool:
    """Enqueue in a transaction of its own."""
    async with db.transaction(job.tenant_id) as conn:
        return await service.defer_resolution(
            conn,
            tenant_id=job.tenant_id,
            catalog_id=job.catalog_id,
            capture_id=job.capture_id,
            attempt_group=job.attempt_group,
        )


async def waiting(db: Database, tenant: str | None = TENANT) -> int:
    """How many jobs wait, as far as that tenant may see."""
    async with db.transaction(tenant) as conn:
        return (await store.waiting(conn))[0]


async def fail_often(db: Database, times: int, failure: Failure = BROKEN) -> list[tuple[int, bool]]:
    """Count that many failures."""
    return [await service.count_failure(db, JOB, failure) for _ in range(times)]


async def mark(db: Database, stage: Stage, job: ResolveJob = JOB) -> bool:
    """Write an inbox row."""
    async with db.transaction(job.tenant_id) as conn:
        return await service.mark_done(conn, job, stage)


async def test_a_job_lives_and_dies_with_the_caller_s_transaction(db: Database) -> None:
    """Capture, receipt and job are one transaction: a rollback leaves none of them."""

    async def rolled_back() -> None:
        async with db.transaction(TENANT) as conn:
            await store.defer(conn, JOB)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await rolled_back()
    assert await waiting(db) == 0
    assert await defer(db)
    assert await waiting(db) == 1


async def test_a_capture_waits_once_for_each_attempt_group(db: Database) -> None:
    """Asking twice is harmless and leaves the caller's transaction usable."""
    assert await defer(db)
    assert not await defer(db)
    assert await defer(db, ResolveJob(TENANT, CATALOG, "cap_1", 1))
    assert await waiting(db) == 2


async def test_nothing_is_notified_inside_a_transaction(db: Database) -> None:
    """NOTIFY takes a lock of the whole database until the commit: the library's triggers are gone."""
    async with db.transaction(None) as conn:
        cursor = await conn.execute(
            "select p.prosrc from pg_trigger t join pg_proc p on p.oid = t.tgfoid"
            " where t.tgrelid = 'resolver.procrastinate_jobs'::regclass"
        )
        sources = [row[0] for row in await cursor.fetchall()]
    assert sources
    assert not any("notify" in source.lower() for source in sources)


async def test_a_tenant_sees_its_own_jobs_only(db: Database) -> None:
    """The queue is one table; row-level security keeps tenants apart, and makes nobody else's jobs."""
    await defer(db)
    await defer(db, ResolveJob(OTHER, CATALOG, "cap_2"))
    assert (await waiting(db), await waiting(db, OTHER), await waiting(db, None)) == (1, 1, 2)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.transaction(TENANT) as conn:
            await store.defer(conn, ResolveJob(OTHER, CATALOG, "cap_3"))


async def test_a_stage_is_marked_once(db: Database) -> None:
    """The second delivery is told that the first one did it."""
    assert await mark(db, Stage.EXTRACT)
    assert not await mark(db, Stage.EXTRACT)
    assert await mark(db, Stage.NORMALISE)
    async with db.transaction(TENANT) as conn:
        assert await service.done_stages(conn, JOB) == {Stage.EXTRACT, Stage.NORMALISE}
        later = ResolveJob(TENANT, CATALOG, "cap_1", 1)
        assert await service.done_stages(conn, later) == frozenset()


async def test_an_inbox_row_inside_a_command_of_the_stream_is_refused_the_second_time(
    db: Database,
) -> None:
    """`jobs_apply` violates the key, which makes the command a duplicate."""

    async def apply() -> None:
        async with db.transaction(TENANT) as conn:
            row = psycopg.types.json.Jsonb({"job_id": JOB.stage_id(Stage.IDENTIFY)})
            await conn.execute("select resolver.jobs_apply(%s, %s)", (TENANT, row))

    await apply()
    with pytest.raises(psycopg.errors.UniqueViolation):
        await apply()
    async with db.transaction(TENANT) as conn:
        assert await service.done_stages(conn, JOB) == {Stage.IDENTIFY}


async def test_five_failures_of_a_stage_make_a_dead_letter(db: Database) -> None:
    """Four are tried again; the fifth is final, visible, and on the capture's state."""
    assert await fail_often(db, MOST_FAILURES) == [
        (1, False),
        (2, False),
        (3, False),
        (4, False),
        (5, True),
    ]
    [letter] = await service.dead_letters(db, TENANT)
    assert (letter.stage, letter.code, letter.failures) == (Stage.NORMALISE, "DB_UNAVAILABLE", 5)
    async with db.transaction(TENANT) as conn:
        states = await service.stage_states(conn, ["cap_1", "cap_unknown"])
    assert states["cap_1"].dead_code == "DB_UNAVAILABLE"
    assert states["cap_unknown"].dead_code is None
    assert await service.dead_letters(db, OTHER) == ()


async def test_failures_of_different_stages_are_counted_apart(db: Database) -> None:
    """A stage that was got through does not count against the next one."""
    await fail_often(db, 4)
    other = Failure(Stage.IDENTIFY, "UNAVAILABLE", "busy", retryable=True)
    assert await service.count_failure(db, JOB, other) == (1, False)


async def test_what_can_never_succeed_is_a_dead_letter_at_once(db: Database) -> None:
    """Schema invalid, digest mismatch, tenant mismatch: trying again would change nothing."""
    failure = Failure(Stage.EXTRACT, "DIGEST_MISMATCH", "changed", retryable=False)
    assert await fail_often(db, 1, failure) == [(1, True)]


async def test_redriving_starts_at_the_stage_that_failed_under_a_new_group(db: Database) -> None:
    """What was done counts; the failures do not."""
    await mark(db, Stage.EXTRACT)
    await fail_often(db, MOST_FAILURES)
    [job] = await service.redrive(db, TENANT)
    assert job == ResolveJob(TENANT, CATALOG, "cap_1", 1)
    async with db.transaction(TENANT) as conn:
        assert await service.done_stages(conn, job) == {Stage.EXTRACT}
    assert await service.dead_letters(db, TENANT) == ()
    assert await waiting(db) == 1
    assert await service.count_failure(db, job, BROKEN) == (1, False)


async def test_a_dead_letter_is_taken_up_once_whoever_asks(db: Database) -> None:
    """Two operators at once make one job."""
    await fail_often(db, MOST_FAILURES)
    jobs = await asyncio.gather(*(service.redrive(db, TENANT) for _ in range(4)))
    assert sum(len(made) for made in jobs) == 1
    assert await service.redrive(db, TENANT) == ()


async def test_one_dead_letter_can_be_redriven_alone(db: Database) -> None:
    """By the capture that it is of."""
    await fail_often(db, MOST_FAILURES)
    assert await service.redrive(db, TENANT, "cap_other") == ()
    assert len(await service.dead_letters(db, TENANT, "cap_1")) == 1
    assert len(await service.redrive(db, TENANT, "cap_1")) == 1


async def test_two_jobs_of_one_capture_are_never_worked_at_once(
    db: Database, resolver_database: dict[str, str]
) -> None:
    """The queue's lock is the capture, whatever the attempt group."""
    await defer(db)
    await defer(db, ResolveJob(TENANT, CATALOG, "cap_1", 1))
    async with JobQueue.open(resolver_database["resolver_app"]) as queue:
        first = await queue.take()
        assert first is not None
        assert ResolveJob.parse(first.arguments) == JOB
        assert await queue.take() is None
        await queue.finish(first)
        second = await queue.take()
        assert second is not None
        await queue.put_back(second, timedelta(hours=1))
        assert await queue.take() is None


async def test_a_job_put_back_beside_its_like_gives_way(
    db: Database, resolver_database: dict[str, str]
) -> None:
    """One waiting job is enough, and the one in hand does not stay behind."""
    await defer(db)
    async with JobQueue.open(resolver_database["resolver_app"]) as queue:
        taken = await queue.take()
        assert taken is not None
        await defer(db)
        await queue.put_back(taken, timedelta(0))
    async with db.transaction(None) as conn:
        assert await store.waiting(conn) == (1, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"tenant_id": "t", "catalog_id": "c", "capture_id": ""},
        {"tenant_id": "t", "catalog_id": "c", "capture_id": 5, "attempt_group": 0},
        {"tenant_id": "t", "catalog_id": "c", "capture_id": "x", "attempt_group": -1},
    ],
)
def test_a_row_that_is_no_job_is_refused(arguments: dict[str, Any]) -> None:
    """What is in the queue is checked before it is believed."""
    with pytest.raises(BadJob):
        ResolveJob.parse(arguments)


def test_waiting_grows_and_stays_bounded() -> None:
    """Exponential with jitter, never above the cap."""
    base = timedelta(seconds=2)
    for failures in range(1, 40):
        longest = min(timedelta(minutes=5), base * 2 ** (failures - 1))
        assert longest * 0.25 <= backoff(failures, base) <= longest


async def test_a_wake_up_reaches_every_listener_and_is_no_lock() -> None:
    """A hint across threads; nobody listening is no error."""
    wake = Wake()
    wake.set()
    with wake.listening() as one, wake.listening() as two:
        await asyncio.to_thread(wake.set)
        await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), timeout=5)


def test_the_queue_s_schema_is_the_one_of_the_installed_library() -> None:
    """The migration holds the library's schema as it was; a library with another one needs a migration of its own."""
    shipped = resources.files("procrastinate.sql").joinpath("schema.sql").read_text("utf-8")
    migration = resources.files("prw_resolver.migrations").joinpath("0004.jobs.sql")
    assert shipped[shipped.index("-- Enums") :].strip() in migration.read_text("utf-8")
