"""One artifact whose bytes come in: a bounded queue between the stream and the object store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from prw.errors import PrwError
from prw_resolver.objects.model import ObjectKey, ObjectMeta
from prw_resolver.objects.port import ObjectStore

CHUNKS_AHEAD: Final = 2
"""Chunks of one artifact that wait for the object store; the caller is then held back by the transport."""


class Incoming:
    """An artifact on its way. Once it is `finished`, it is `stored`, or `error` says why it was refused."""

    def __init__(self, sequence: int, meta: ObjectMeta) -> None:
        self.sequence = sequence
        self.meta = meta
        self.stored = False
        self.error: PrwError | None = None
        self.finished = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(CHUNKS_AHEAD)

    async def feed(self, data: bytes) -> None:
        """Hand over the next bytes; those of an artifact that is refused already are dropped."""
        if data and not self.finished.is_set():
            await self._chunks.put(data)

    async def end(self) -> None:
        """Say that there are no more."""
        if not self.finished.is_set():
            await self._chunks.put(None)

    async def keep(self, objects: ObjectStore, key: ObjectKey) -> None:
        """Store the bytes as they come; a refusal stays with the artifact, any other failure is raised."""
        try:
            await objects.put_if_absent(key, self.meta, self._data())
            self.stored = True
        except PrwError as refused:
            self.error = refused
        finally:
            self.finished.set()
            self._let_go()

    def drop(self) -> None:
        """Give up what will not become whole; nothing of it is stored."""
        if self.task is not None:
            self.task.cancel()

    async def _data(self) -> AsyncIterator[bytes]:
        while (data := await self._chunks.get()) is not None:
            yield data

    def _let_go(self) -> None:
        # Whoever waits to hand over more goes on, and is told by `finished`.
        while not self._chunks.empty():
            self._chunks.get_nowait()
