"""The caller's deadline, bound to the task so that the database can be told about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta

_until: ContextVar[float | None] = ContextVar("prw_deadline", default=None)


@contextmanager
def bind_remaining(seconds: float | None) -> Iterator[None]:
    """Within the block the caller waits ``seconds`` more; None means that no deadline was set."""
    token = _until.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def remaining() -> timedelta | None:
    """The time the caller still waits, never below zero; None where no deadline was set."""
    until = _until.get()
    if until is None:
        return None
    return timedelta(seconds=max(0.0, until - time.monotonic()))
