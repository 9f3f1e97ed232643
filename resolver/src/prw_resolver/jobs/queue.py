"""The queue as a worker sees it: procrastinate's jobs on a small pool of their own, working for no tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.psycopg_connector import PsycopgConnector
from psycopg_pool import AsyncConnectionPool

from prw_resolver.jobs.model import QUEUE


class QueueUnavailable(Exception):
    """The database does not answer. What was asked may or may not have happened; ask again."""


class NotOurs(Exception):
    """The job is no longer this worker's: another took it for lost, and works on it or has finished it."""


class _Rival(Exception):
    """A job for the same capture waits or is worked on already."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A job in hand: its row in the queue, and its arguments as they stand there."""

    row: Job

    @property
    def row_id(self) -> int | None:
        """The number of its row."""
        return self.row.id

    @property
    def arguments(self) -> dict[str, object]:
        """What was enqueued, not yet checked."""
        return dict(self.row.task_kwargs)


class JobQueue:
    """Take jobs, give them back, mark them done; every call raises `QueueUnavailable` while the database is away."""

    def __init__(self, pool: AsyncConnectionPool, connector: PsycopgConnector) -> None:
        self._pool = pool
        self._manager = JobManager(connector)
        self._worker_id: int | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, dsn: str, max_size: int = 4) -> AsyncIterator[JobQueue]:
        """Open the pool, as the role of `dsn`; at the end the worker is signed off."""
        pool = AsyncConnectionPool(
            dsn,
            min_size=1,
            max_size=max_size,
            timeout=5,
            # The library's names are unqualified.
            kwargs={"autocommit": True, "options": "-c search_path=resolver,pg_catalog"},
            check=AsyncConnectionPool.check_connection,
            open=False,
        )
        await pool.open(wait=True, timeout=10)
        try:
            connector = PsycopgConnector()
            await connector.open_async(pool)
            queue = cls(pool, connector)
            yield queue
            await queue._sign_off()
        finally:
            await pool.close()

    async def take(self) -> Taken | None:
        """The next job that is due, now marked as this worker's; None where there is none."""
        async with _translated():
            if self._worker_id is None:
                self._worker_id = await self._manager.register_worker()
            row = await self._fetch(self._worker_id)
        return Taken(row) if row is not None else None

    async def _fetch(self, worker_id: int) -> Job | None:
        try:
            return await self._manager.fetch_job([QUEUE], worker_id)
        except UniqueViolation:
            return None  # another worker took a job for the same capture at the same moment
        except ConnectorException as error:
            if not isinstance(error.__cause__, psycopg.errors.ForeignKeyViolation):
                raise
            # Another worker took this one for dead and struck it off: sign on again at the next call.
            self._worker_id = None
            return None

    async def finish(self, job: Taken) -> None:
        """The job is done: its row goes, since the inbox keeps what was done."""
        async with _translated():
            await self._manager.finish_job(job.row, Status.SUCCEEDED, delete_job=True)

    async def give_up(self, job: Taken) -> None:
        """The job has failed for good; its row stays as failed."""
        async with _translated():
            await self._manager.finish_job(job.row, Status.FAILED, delete_job=False)

    async def put_back(self, job: Taken, after: timedelta) -> None:
        """The job waits again, for so long at least; where its like waits already, that one is enough."""
        try:
            async with _translated():
                await self._manager.retry_job(job.row, retry_at=datetime.now(UTC) + after)
        except _Rival:
            await self.finish(job)

    async def beat(self) -> None:
        """Say that this worker lives."""
        async with _translated():
            if self._worker_id is not None:
                await self._manager.update_heartbeat(self._worker_id)

    async def lost(self, silent_for: timedelta) -> list[Taken]:
        """Jobs of workers that have not said for so long that they live."""
        seconds = silent_for.total_seconds()
        async with _translated():
            rows = await self._manager.get_stalled_jobs(
                queue=QUEUE, seconds_since_heartbeat=seconds
            )
        return [Taken(row) for row in rows]

    async def strike_off(self, silent_for: timedelta) -> None:
        """Forget workers that have not said for so long that they live."""
        async with _translated():
            await self._manager.prune_stalled_workers(silent_for.total_seconds())

    async def _sign_off(self) -> None:
        if self._worker_id is None:
            return
        try:
            async with _translated():
                await self._manager.unregister_worker(self._worker_id)
        except QueueUnavailable:
            return  # whoever sweeps next finds the heartbeat old and strikes the worker off


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except AssertionError as error:
        # The library reads the key out of the error's detail, which PostgreSQL withholds under row-level security.
        if isinstance(error.__context__, psycopg.errors.UniqueViolation):
            raise _Rival from error
        raise
    except UniqueViolation as error:
        raise _Rival from error
    except ConnectorException as error:
        if isinstance(error.__cause__, psycopg.errors.RaiseException):
            raise NotOurs(str(error.__cause__)) from error
        raise QueueUnavailable(str(error.__cause__ or error)) from error
