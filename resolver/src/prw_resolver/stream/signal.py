"""Wakes readers after a commit. Only a hint: polling is the truth, and a lost wake-up costs one poll interval."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress

from prw_resolver.stream.model import Stream


class Signal:
    """In-process wake-ups by stream; NOTIFY inside the committing transaction would take a database-wide lock."""

    def __init__(self) -> None:
        self._events: defaultdict[tuple[str, str], asyncio.Event] = defaultdict(asyncio.Event)

    def notify(self, stream: Stream) -> None:
        """Wake everybody who waits for the stream now."""
        event = self._events.pop((stream.tenant_id, stream.catalog_id), None)
        if event is not None:
            event.set()

    async def wait(self, stream: Stream, seconds: float) -> None:
        """Return at the next wake-up, or after so many seconds."""
        event = self._events[stream.tenant_id, stream.catalog_id]
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)
