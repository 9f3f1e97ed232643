"""The in-process signal that a job was committed. A hint only: whoever misses it polls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Wake:
    """Wakes every worker of this process, whichever event loop it runs in."""

    def __init__(self) -> None:
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def set(self) -> None:
        """Wake whoever waits. To be called after the commit, from any thread."""
        for loop, event in tuple(self._waiting):
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that is set by each wake-up, for as long as the context lasts; the listener clears it."""
        entry = asyncio.get_running_loop(), asyncio.Event()
        self._waiting.add(entry)
        try:
            yield entry[1]
        finally:
            self._waiting.discard(entry)


WAKE = Wake()
"""The one of this process: intake and the command that redrives set it, workers listen."""
