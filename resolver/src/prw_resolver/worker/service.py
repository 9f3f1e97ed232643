"""The worker: takes jobs, and sees to what others left behind.

Polling is the truth and a wake-up only a hint: a lost one costs one poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import structlog

from prw.errors import PrwError
from prw_resolver.jobs import service as jobs
from prw_resolver.jobs.queue import JobQueue, NotOurs, QueueUnavailable, Taken
from prw_resolver.jobs.wake import WAKE
from prw_resolver.worker.delivery import PATIENCE, Deliveries
from prw_resolver.worker.parts import FollowUp, WorkerParts

log = structlog.get_logger("prw_resolver.worker")


class Worker:
    """Works the queue with `concurrency` jobs at once until it is stopped."""

    def __init__(self, parts: WorkerParts, queue: JobQueue) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._queue = queue
        self._deliveries = Deliveries(parts, queue)
        self._stopping = asyncio.Event()
        self._in_hand: set[int | None] = set()
        self._worked = asyncio.Event()

    def stop(self) -> None:
        """Take no further job; `run` returns when those in hand are done, or after the drain limit."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`. A defect in one of the loops ends them all and is raised."""
        with WAKE.listening() as wake:
            loops = [asyncio.create_task(loop) for loop in self._loops(wake)]
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait([*loops, stopping], return_when=asyncio.FIRST_COMPLETED)
                self._stopping.set()
                limit = self._settings.drain_limit.total_seconds()
                await asyncio.wait(loops, timeout=limit)
            finally:
                await _end([*loops, stopping])
        for loop in loops:
            if not loop.cancelled():
                loop.result()

    def _loops(self, wake: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
        settings = self._settings
        return [
            *(self._take_and_work(wake) for _ in range(settings.concurrency)),
            self._every(settings.heartbeat, self._queue.beat),
            self._every(settings.lost_after / 4, self._recover_lost),
            self._every(settings.repair_every, self._repair),
            *(self._follow(follow_up) for follow_up in self._parts.follow_ups),
        ]

    async def _take_and_work(self, wake: asyncio.Event) -> None:
        while not self._stopping.is_set():
            wake.clear()
            taken = await self._take()
            if taken is None:
                await self._wait(wake, self._settings.poll)
                continue
            self._in_hand.add(taken.row_id)
            try:
                await self._deliveries.deliver(taken)
            finally:
                self._in_hand.discard(taken.row_id)
            self._worked.set()

    async def _take(self) -> Taken | None:
        try:
            return await self._queue.take()
        except QueueUnavailable as error:
            log.warning("database_away", detail=str(error))
            await self._wait(None, PATIENCE)
            return None

    async def _every(self, period: timedelta, act: Callable[[], Awaitable[None]]) -> None:
        while not self._stopping.is_set():
            try:
                await act()
            except (QueueUnavailable, NotOurs, PrwError, psycopg.OperationalError) as error:
                log.warning("housekeeping_put_off", detail=str(error))
            await self._wait(None, period)

    async def _recover_lost(self) -> None:
        """Jobs of workers that fell silent go back into the queue, and the workers are forgotten."""
        silent = self._settings.lost_after
        async with jobs.sweeping(self._parts.db) as mine:
            if not mine:
                return
            for taken in await self._queue.lost(silent):
                if taken.row_id not in self._in_hand:
                    await self._deliveries.recover(taken)
            await self._queue.strike_off(silent)

    async def _repair(self) -> None:
        """Captures that no job works on get one (state, "Jobs")."""
        for job in await jobs.repair(self._parts.db, self._settings.repair_age):
            log.warning("job_repaired", tenant=job.tenant_id, capture=job.capture_id)

    async def _follow(self, follow_up: FollowUp) -> None:
        """Work that other work left behind, after each job and on a poll, until nothing is left."""
        most = self._settings.follow_ups
        while not self._stopping.is_set():
            self._worked.clear()
            done = 0
            try:
                done = await follow_up(most)
            except (PrwError, psycopg.OperationalError) as error:
                log.warning("follow_up_put_off", detail=str(error))
                await self._wait(None, PATIENCE)
            if done < most:
                await self._wait(self._worked, self._settings.poll)

    async def _wait(self, event: asyncio.Event | None, period: timedelta) -> None:
        """Wait for the event, for the stop, or for the period."""
        waiting = [asyncio.create_task(self._stopping.wait())]
        if event is not None:
            waiting.append(asyncio.create_task(event.wait()))
        try:
            await asyncio.wait(
                waiting, timeout=period.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            await _end(waiting)


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
