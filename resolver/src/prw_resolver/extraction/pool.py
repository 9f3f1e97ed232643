"""Processes in which adapters read, so that a slow, hung or crashing parser harms nobody but its own capture."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import EntryPoint
from typing import Self

from prw_resolver.extraction import reader
from prw_resolver.extraction.model import ReadCode, ReadFailed, Reading
from prw_sdk.evidence import Capture

READ_LIMIT = timedelta(seconds=30)
START_LIMIT = timedelta(seconds=60)


class ReaderPool:
    """Reads captures in `size` processes of its own, each started when it is first needed.

    Each process is a pool of one, so that what kills it can only be the capture that it was reading.
    """

    def __init__(
        self,
        size: int,
        limit: timedelta = READ_LIMIT,
        points: tuple[EntryPoint, ...] | None = None,
    ) -> None:
        self._slots = [_Slot(limit, points) for _ in range(size)]
        self._free: asyncio.LifoQueue[_Slot] = asyncio.LifoQueue()
        for slot in self._slots:
            self._free.put_nowait(slot)

    async def read(self, capture: Capture) -> Reading:
        """What the adapter that made the capture reads out of it; raises `ReadFailed`."""
        slot = await self._free.get()
        try:
            answer = await slot.read(capture)
        finally:
            self._free.put_nowait(slot)
        if isinstance(answer, reader.Failed):
            raise ReadFailed(answer.code, answer.detail)
        return answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for slot in self._slots:
            slot.stop()


class _Slot:
    """One reading process, replaced when it has to be killed."""

    def __init__(self, limit: timedelta, points: tuple[EntryPoint, ...] | None) -> None:
        self._limit = limit
        self._points = points
        self._executor: ProcessPoolExecutor | None = None
        self._process_id = 0

    async def read(self, capture: Capture) -> Reading | reader.Failed:
        try:
            async with asyncio.timeout(START_LIMIT.total_seconds()):
                executor = await self._started()
            async with asyncio.timeout(self._limit.total_seconds()):
                return await asyncio.wrap_future(executor.submit(reader.read, capture))
        except TimeoutError:
            self.stop()
            seconds = self._limit.total_seconds()
            raise ReadFailed(ReadCode.PARSER_TIMEOUT, f"no answer within {seconds:g} s") from None
        except BrokenProcessPool as error:
            self.stop()
            raise ReadFailed(ReadCode.PARSER_CRASHED, "the reading process ended") from error
        except asyncio.CancelledError:
            self.stop()
            raise

    async def _started(self) -> ProcessPoolExecutor:
        if self._executor is None:
            # Spawned, since a fork would copy the threads' locks of the gRPC server.
            self._executor = ProcessPoolExecutor(
                max_workers=1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=reader.prepare,
                initargs=(self._points,),
            )
            self._process_id = await asyncio.wrap_future(self._executor.submit(reader.process_id))
        return self._executor

    def stop(self) -> None:
        """Kill the process at once, whatever it does."""
        executor, self._executor = self._executor, None
        process_id, self._process_id = self._process_id, 0
        if process_id:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
