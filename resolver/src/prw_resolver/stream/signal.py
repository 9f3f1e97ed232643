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

    def listen(self, stream: Stream) -> asyncio.Event:
        """What the next wake-up sets. Take it before reading, or a commit between the two wakes nobody."""
        return self._events[stream.tenant_id, stream.catalog_id]

    @staticmethod
    async def wait(listened: asyncio.Event, seconds: float) -> None:
        """Return at the wake-up that was listened for, or after so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(listened.wait(), seconds)
