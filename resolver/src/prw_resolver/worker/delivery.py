"""One delivery of a job: walk it, and settle with the queue what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Final, TypeVar

import psycopg
import structlog

from prw.errors import JobCode
from prw_resolver.jobs import service as jobs
from prw_resolver.jobs.model import BadJob, Failure, ResolveJob, Stage, backoff
from prw_resolver.jobs.queue import JobQueue, NotOurs, QueueUnavailable, Taken
from prw_resolver.worker.failures import WORKER_LOST, failure_of, is_database_away
from prw_resolver.worker.parts import WorkerParts
from prw_resolver.worker.walk import walk

T = TypeVar("T")
log = structlog.get_logger("prw_resolver.worker")

PATIENCE: Final = timedelta(milliseconds=500)
"""How long to wait before a database that is away is asked again."""


class Deliveries:
    """Delivers jobs to their walk. While the database is away nothing counts as a failure: the same job goes on."""

    def __init__(self, parts: WorkerParts, queue: JobQueue) -> None:
        self._parts = parts
        self._queue = queue

    async def deliver(self, taken: Taken) -> None:
        """Work one job that is in hand, and settle it."""
        try:
            job = ResolveJob.parse(taken.arguments)
        except BadJob as error:
            log.error(
                "queue_row_invalid",
                row=taken.row_id,
                code=JobCode.SCHEMA_INVALID,
                detail=str(error),
            )
            await self._settled(lambda: self._queue.give_up(taken))
            return
        with structlog.contextvars.bound_contextvars(
            tenant=job.tenant_id, capture=job.capture_id, attempt_group=job.attempt_group
        ):
            failure = await self._patiently(lambda: self._walk(job))
            await self._settle(taken, job, failure)

    async def recover(self, taken: Taken) -> None:
        """Give back a job whose worker fell silent; that is a failure of the stage that it was at."""
        try:
            job = ResolveJob.parse(taken.arguments)
        except BadJob:
            await self.deliver(taken)
            return
        async with self._parts.db.transaction(job.tenant_id, read_only=True) as conn:
            done = await jobs.done_stages(conn, job)
        waiting = [stage for stage in Stage if stage not in done]
        detail = "the worker that had it fell silent"
        failure = Failure(waiting[0], WORKER_LOST, detail, retryable=True) if waiting else None
        await self._settle(taken, job, failure)

    async def _walk(self, job: ResolveJob) -> Failure | None:
        stage = Stage.EXTRACT
        try:
            async with (
                asyncio.timeout(self._parts.settings.job_limit.total_seconds()),
                aclosing(walk(self._parts, job)) as stages,
            ):
                async for begun in stages:
                    stage = begun
        except Exception as error:
            if is_database_away(error):
                raise
            failure = failure_of(stage, error)
            _report(failure, error)
            return failure
        return None

    async def _settle(self, taken: Taken, job: ResolveJob, failure: Failure | None) -> None:
        if failure is None:
            await self._settled(lambda: self._queue.finish(taken))
            return
        failures, dead = await self._patiently(
            lambda: jobs.count_failure(self._parts.db, job, failure)
        )
        if dead:
            log.error("dead_letter", stage=failure.stage, code=failure.code, failures=failures)
            await self._settled(lambda: self._queue.give_up(taken))
            return
        after = backoff(failures, self._parts.settings.retry_base)
        await self._settled(lambda: self._queue.put_back(taken, after))

    async def _settled(self, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._patiently(call)
        except NotOurs:
            log.warning("job_taken_over")

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until the database answers. What is called may be called again after an answer that was lost."""
        while True:
            try:
                return await call()
            except (QueueUnavailable, psycopg.OperationalError) as error:
                if isinstance(error, psycopg.OperationalError) and not is_database_away(error):
                    raise
                log.warning("database_away", detail=str(error))
            await asyncio.sleep(PATIENCE.total_seconds())


def _report(failure: Failure, error: Exception) -> None:
    known = failure.code != "INTERNAL"
    log.warning(
        "stage_failed",
        stage=failure.stage,
        code=failure.code,
        detail=failure.detail,
        exc_info=None if known else error,
    )
    if failure.code == JobCode.TENANT_MISMATCH:
        log.critical("security_alert", code=failure.code, detail=failure.detail)
