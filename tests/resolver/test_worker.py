"""The worker: captures walk their stages once, whatever is delivered, killed or away (if_resolution_job)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from prw.errors import Code, PrwError
from prw_resolver.jobs import service as jobs
from prw_resolver.jobs.model import ResolveJob
from prw_resolver.jobs.queue import JobQueue
from prw_resolver.worker.service import Worker
from prw_sdk.evidence import AdapterVersion, Presence
from tests.resolver.walking import (
    CATALOG,
    FAST,
    OTHER,
    TENANT,
    TWO,
    WALKED_ONCE,
    Rows,
    Shop,
    counts,
    page,
    queue_rows,
    record,
    shop,
    working,
)
from tests.support.waiting import until


@pytest.fixture
async def rooms(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Shop]:
    """Rooms over a database of the test's own."""
    async with shop(resolver_database["resolver_app"], tmp_path) as open_shop:
        yield open_shop


async def defer(rooms: Shop, job: ResolveJob) -> None:
    """Enqueue a job as it stands."""
    async with rooms.db.transaction(job.tenant_id) as conn:
        await jobs.defer_resolution(
            conn,
            tenant_id=job.tenant_id,
            catalog_id=job.catalog_id,
            capture_id=job.capture_id,
            attempt_group=job.attempt_group,
        )


async def test_a_submitted_capture_is_walked_through_its_stages(
    rooms: Shop, superuser: Rows
) -> None:
    """Extract, normalise, identify, in the order of the records; nothing is left in the queue."""
    capture_id = await rooms.submit(TWO)
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
    assert [held.record_id for held in rooms.identified.records] == ["r1", "r2"]
    assert counts(superuser) == WALKED_ONCE
    assert queue_rows(superuser) == []


async def test_a_capture_without_records_is_done_too(rooms: Shop) -> None:
    """A page about something else: the worker itself writes the last inbox row."""
    capture_id = await rooms.submit(page(do="not_a_record"))
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
    assert rooms.identified.records == []


async def test_an_absence_is_put_to_identity_as_one(rooms: Shop) -> None:
    """A page that is gone has no records; what is to become of its listings is asked."""
    capture_id = await rooms.submit(page(do="raise"), presence=Presence.ABSENT)
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
    [absence] = rooms.identified.absences
    assert (absence.capture_id, absence.source_id) == (capture_id, "src_one")
    assert rooms.identified.records == []


async def test_a_job_that_is_delivered_again_does_nothing_twice(
    rooms: Shop, superuser: Rows
) -> None:
    """The inbox has every stage: nothing is read, written or identified again."""
    capture_id = await rooms.submit(TWO)
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
        await defer(rooms, ResolveJob(TENANT, CATALOG, capture_id))
        await until(lambda: queue_rows(superuser) == [])
    assert len(rooms.identified.records) == 2
    assert counts(superuser) == WALKED_ONCE


async def test_two_deliveries_at_once_leave_one_result(rooms: Shop, superuser: Rows) -> None:
    """Whoever was taken for lost and goes on meets the other's inbox row."""
    capture_id = await rooms.submit(TWO)
    async with JobQueue.open(rooms.dsn) as queue:
        worker = Worker(rooms.parts, queue)
        taken = await queue.take()
        assert taken is not None
        await asyncio.gather(*(worker._deliveries.deliver(taken) for _ in range(3)))
    assert await rooms.done(capture_id)
    assert counts(superuser) == WALKED_ONCE
    assert superuser.execute("select code from stage_failure").fetchall() == []


async def test_five_failures_make_a_dead_letter_and_redriving_goes_on_where_it_failed(
    rooms: Shop, superuser: Rows
) -> None:
    """The storage of accepted state is away five times; later it is back."""
    rooms.identified.fails[:] = [PrwError(Code.UNAVAILABLE, "no answer") for _ in range(5)]
    capture_id = await rooms.submit(TWO)
    async with working(rooms):
        await until(rooms.is_dead)
        assert await rooms.dead() == ["UNAVAILABLE"]
        await until(lambda: queue_rows(superuser) == ["failed"])
        [job] = await jobs.redrive(rooms.db, TENANT)
        assert job.attempt_group == 1
        await until(lambda: rooms.done(capture_id))
    assert await rooms.dead() == []
    assert counts(superuser) == WALKED_ONCE | {"job_inbox": 5}


async def test_a_failure_that_passes_leaves_no_trace_but_its_count(rooms: Shop) -> None:
    """Four failures, then success."""
    rooms.identified.fails[:] = [PrwError(Code.KEY_TAKEN, "moved") for _ in range(4)]
    capture_id = await rooms.submit(TWO)
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
    assert await rooms.dead() == []
    assert len(rooms.identified.records) == 2


async def test_what_can_never_be_read_is_a_dead_letter_at_once(
    rooms: Shop, superuser: Rows, tmp_path: Path
) -> None:
    """An unknown version, a parser with a defect, damaged bytes: each with its code, none tried again."""
    await rooms.submit(page(record()), adapter=AdapterVersion("tiny", "9.9.9"))
    await rooms.submit(page(do="raise"))
    damaged = page(record("damaged"))
    sha256 = await rooms.put(damaged)
    await rooms.submit(damaged)
    [file] = (tmp_path / "objects").rglob(sha256)
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1] + b" ")
    async with working(rooms):
        await until(lambda: queue_rows(superuser) == ["failed"] * 3)
    assert sorted(await rooms.dead()) == [
        "DIGEST_MISMATCH",
        "SCHEMA_INVALID",
        "UNKNOWN_ADAPTER_VERSION",
    ]
    assert {letter.failures for letter in await jobs.dead_letters(rooms.db, TENANT)} == {1}


@pytest.mark.parametrize(("tenant", "catalog"), [(OTHER, CATALOG), (TENANT, "elsewhere")])
async def test_a_job_that_disagrees_with_its_capture_raises_an_alert(
    rooms: Shop, superuser: Rows, tenant: str, catalog: str
) -> None:
    """TENANT_MISMATCH: tenant and catalogue are the capture row's, and whoever says otherwise is up to something."""
    capture_id = await rooms.submit(TWO)
    superuser.execute("delete from procrastinate_jobs")
    await defer(rooms, ResolveJob(tenant, catalog, capture_id))
    still = replace(rooms.parts, settings=replace(FAST, repair_age=timedelta(hours=1)))
    with capture_logs() as logs:
        async with working(replace(rooms, parts=still)):
            await until(lambda: queue_rows(superuser) == ["failed"])
    [letter] = await jobs.dead_letters(rooms.db, tenant)
    assert (letter.code, letter.failures) == ("TENANT_MISMATCH", 1)
    assert [entry["log_level"] for entry in logs if entry["event"] == "security_alert"] == [
        "critical"
    ]
    assert rooms.identified.records == []


async def test_a_row_that_is_no_job_is_set_aside(rooms: Shop, superuser: Rows) -> None:
    """It is neither believed nor in the way."""
    superuser.execute(
        "insert into procrastinate_jobs (queue_name, task_name, args)"
        " values ('resolve', 'resolve', '{\"tenant_id\": 5}')"
    )
    capture_id = await rooms.submit(TWO)
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
        await until(lambda: queue_rows(superuser) == ["failed"])


async def test_a_capture_whose_job_was_lost_gets_another(rooms: Shop, superuser: Rows) -> None:
    """The repair scan: what intake committed is worked, whatever became of the queue's row."""
    capture_id = await rooms.submit(TWO)
    superuser.execute("delete from procrastinate_jobs")
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
    assert len(rooms.identified.records) == 2


async def test_the_repair_scan_leaves_alone_what_is_done_dead_or_waiting(rooms: Shop) -> None:
    """Only captures that nobody would ever come back to."""
    waiting = await rooms.submit(page(record("waiting")))
    assert await jobs.repair(rooms.db, timedelta(0)) == ()
    dead = await rooms.submit(page(do="raise"))
    async with working(rooms):
        await until(lambda: rooms.done(waiting))
        await until(rooms.is_dead)
        await until(lambda: _is_empty(rooms))
    assert await jobs.repair(rooms.db, timedelta(0)) == ()
    assert [letter.capture_id for letter in await jobs.dead_letters(rooms.db, TENANT)] == [dead]


async def test_a_dead_letter_that_is_taken_up_again_is_watched_again(
    rooms: Shop, superuser: Rows
) -> None:
    """Its new job may be lost as well as its first; a capture that is done is watched no more."""
    done = await rooms.submit(TWO)
    dead = await rooms.submit(page(do="raise"))
    async with working(rooms):
        await until(lambda: rooms.done(done))
        await until(rooms.is_dead)
    await jobs.redrive(rooms.db, TENANT)
    superuser.execute("delete from procrastinate_jobs")
    repaired = await jobs.repair(rooms.db, timedelta(0))
    assert [(job.capture_id, job.attempt_group) for job in repaired] == [(dead, 1)]


async def _is_empty(rooms: Shop) -> bool:
    async with rooms.db.transaction(None) as conn:
        return await jobs.waiting(conn) == (0, 0)


async def test_the_job_of_a_worker_that_fell_silent_goes_to_another(
    rooms: Shop, superuser: Rows
) -> None:
    """It is a failure of the stage that it was at, so that a capture which kills workers ends as a dead letter."""
    capture_id = await rooms.submit(TWO)
    async with JobQueue.open(rooms.dsn) as silent:
        assert await silent.take() is not None
        superuser.execute(
            "update procrastinate_workers set last_heartbeat = now() - interval '1 minute'"
        )
        async with working(rooms):
            await until(lambda: rooms.done(capture_id))
    [row] = superuser.execute("select stage, failures, code from stage_failure").fetchall()
    assert row == {"stage": "extract", "failures": 1, "code": "WORKER_LOST"}
    assert counts(superuser) == WALKED_ONCE


async def test_follow_up_work_is_done_until_nothing_is_left(rooms: Shop) -> None:
    """After jobs and on a poll; one that fails for a while is asked again."""
    left = [3, 1, 0]

    async def follow_up(most: int) -> int:
        if not left:
            return 0
        if left[0] == 1:
            left[0] = 2
            raise PrwError(Code.UNAVAILABLE, "not now")
        left.pop(0)
        return most

    parts = replace(rooms.parts, follow_ups=(follow_up,))
    async with working(replace(rooms, parts=parts)):
        await until(lambda: not left)


async def test_a_stopping_worker_ends_what_it_has_in_hand(rooms: Shop) -> None:
    """Graceful: the job is finished, and no further one is taken."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    decide = rooms.identified

    async def slow(*args: Any, **kwargs: Any) -> object:
        begun.set()
        await go_on.wait()
        return await decide(*args, **kwargs)

    settings = replace(FAST, concurrency=1)
    parts = replace(rooms.parts, identify=slow, settings=settings)
    first = await rooms.submit(page(record("first")))
    second = await rooms.submit(page(record("second")))
    async with JobQueue.open(rooms.dsn) as queue:
        worker = Worker(parts, queue)
        running = asyncio.create_task(worker.run())
        await asyncio.wait_for(begun.wait(), timeout=20)
        worker.stop()
        go_on.set()
        await asyncio.wait_for(running, timeout=20)
    assert await rooms.done(first)
    assert not await rooms.done(second)


async def test_a_database_that_goes_away_costs_time_and_nothing_else(
    rooms: Shop, superuser: Rows, cluster: Any
) -> None:
    """Every connection is cut and refused for a while: the job in hand goes on, and nothing counts as a failure."""
    begun = asyncio.Event()
    go_on = asyncio.Event()
    decide = rooms.identified

    async def held_up(*args: Any, **kwargs: Any) -> object:
        begun.set()
        await go_on.wait()
        return await decide(*args, **kwargs)

    capture_id = await rooms.submit(TWO)
    parts = replace(rooms.parts, identify=held_up)
    [name] = superuser.execute("select current_database() as name").fetchall()
    with capture_logs() as logs:
        async with working(replace(rooms, parts=parts)):
            await asyncio.wait_for(begun.wait(), timeout=20)
            async with _outage(cluster.dsn, name["name"]):
                go_on.set()
                await until(lambda: any(entry["event"] == "database_away" for entry in logs))
            await until(lambda: _answers_done(rooms, capture_id))
            later = await rooms.submit(page(record("later")))
            await until(lambda: rooms.done(later))
    async with rooms.db.transaction(TENANT) as conn:
        cursor = await conn.execute("select count(*) from resolver.stage_failure")
        assert await cursor.fetchone() == (0,)


async def _answers_done(rooms: Shop, capture_id: str) -> bool:
    try:
        return await rooms.done(capture_id)
    except psycopg.OperationalError:
        return False


@asynccontextmanager
async def _outage(admin_dsn: str, database: str) -> AsyncIterator[None]:
    allow = "alter database {} with allow_connections {}"
    name = psycopg.sql.Identifier(database)
    async with await psycopg.AsyncConnection.connect(admin_dsn, autocommit=True) as admin:
        await admin.execute(psycopg.sql.SQL(allow).format(name, psycopg.sql.SQL("false")))
        await admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (database,)
        )
        try:
            yield
        finally:
            await admin.execute(psycopg.sql.SQL(allow).format(name, psycopg.sql.SQL("true")))
