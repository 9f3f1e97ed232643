"""Waiting for something to become true, with a deadline; the only place where tests poll."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar, overload

T = TypeVar("T")

DEADLINE = timedelta(seconds=20)
_STEP = 0.02


@overload
async def until(predicate: Callable[[], Awaitable[T]], deadline: timedelta = DEADLINE) -> T: ...


@overload
async def until(predicate: Callable[[], T], deadline: timedelta = DEADLINE) -> T: ...


async def until(predicate: Callable[[], T | Awaitable[T]], deadline: timedelta = DEADLINE) -> T:
    """Poll ``predicate`` (plain or async) until it is truthy, and return what it gave.

    Raises AssertionError, naming the predicate, when ``deadline`` has passed.
    """
    end = time.monotonic() + deadline.total_seconds()
    while True:
        answer = predicate()
        value: T = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(_late(predicate, deadline, value))
        await asyncio.sleep(_STEP)


def until_sync(predicate: Callable[[], T], deadline: timedelta = DEADLINE) -> T:
    """``until`` for tests without a loop."""
    end = time.monotonic() + deadline.total_seconds()
    while not (value := predicate()):
        if time.monotonic() > end:
            raise AssertionError(_late(predicate, deadline, value))
        time.sleep(_STEP)
    return value


def _late(predicate: Callable[[], object], deadline: timedelta, value: object) -> str:
    name = getattr(predicate, "__qualname__", repr(predicate))
    return f"{name} was still {value!r} after {deadline.total_seconds():g} s"
