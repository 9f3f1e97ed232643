"""A thread for foreign code that may never return: it holds up nobody else, and not the end of the process either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")

_Call = tuple[Callable[[], T], asyncio.AbstractEventLoop, "asyncio.Future[T]"]


class OwnThread(Generic[T]):
    """Runs one call after the other. It is a daemon: those of an executor are waited for as the process ends."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call[T] | None] = SimpleQueue()
        Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, call: Callable[[], T]) -> T:
        """What the call gives, or raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put((call, loop, future))
        return await future

    def close(self) -> None:
        """End the thread after what it was given; waits for nothing."""
        self._calls.put(None)

    def _work(self) -> None:
        while (given := self._calls.get()) is not None:
            call, loop, future = given
            try:
                told = _result(future, call())
            except Exception as error:  # noqa: BLE001 - it is raised where the call was given
                told = _error(future, error)
            # a loop that is closed meanwhile waits for nothing any more
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(told)


def _result(future: asyncio.Future[T], value: T) -> Callable[[], None]:
    return lambda: None if future.done() else future.set_result(value)


def _error(future: asyncio.Future[T], error: Exception) -> Callable[[], None]:
    return lambda: None if future.done() else future.set_exception(error)
