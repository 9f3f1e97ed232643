"""Something that happens between any two statements of the code under test, as another session would have it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest


@contextmanager
def interrupted(
    monkeypatch: pytest.MonkeyPatch, happen: Callable[[], Awaitable[None]]
) -> Iterator[list[str]]:
    """Within the block `happen` runs after each statement; gives the statements that were followed by it.

    It has to use connections of its own, and must not wait for a lock that the interrupted code holds.
    """
    execute = psycopg.AsyncCursor.execute
    statements: list[str] = []
    happening = False

    async def interrupt(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal happening
        done = await execute(cursor, query, *arguments, **options)
        # What happens is not interrupted, in whichever task it runs.
        if not happening:
            happening = True
            statements.append(query.decode() if isinstance(query, bytes) else str(query))
            try:
                await happen()
            finally:
                happening = False
        return done

    with monkeypatch.context() as patching:
        patching.setattr(psycopg.AsyncCursor, "execute", interrupt)
        yield statements
