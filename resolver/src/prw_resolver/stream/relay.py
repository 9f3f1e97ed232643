"""The relay: marks what is published, in batches and for every tenant (AW-03).

Consumers of the gRPC stream read committed rows themselves, so that to be readable is to be published. With a broker
the mark comes after its acknowledgement; a crash in between delivers twice.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import psycopg
import structlog

from prw_base.server.database import CONSUMER_TIMEOUT, Database
from prw_resolver.stream import store

BATCH = 500
POLL = timedelta(seconds=1)

log = structlog.get_logger(__name__)


class Relay:
    """Works as `resolver_relay`, whose only right beside reading the outbox is to set that mark."""

    def __init__(self, database: Database, *, batch: int = BATCH, poll: timedelta = POLL) -> None:
        self._database = database
        self._batch = batch
        self._poll = poll.total_seconds()

    async def mark(self) -> int:
        """Mark one batch; returns how many changes it was, fewer than a batch where none are left."""
        async with self._database.transaction(None, timeout=CONSUMER_TIMEOUT) as conn:
            return await store.mark_published(conn, self._batch)

    async def run(self, stop: asyncio.Event) -> None:
        """Mark until the stop. A database that does not answer is asked again at the next poll."""
        while not stop.is_set():
            if await self._mark() < self._batch:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), self._poll)

    async def _mark(self) -> int:
        try:
            return await self.mark()
        except psycopg.OperationalError as error:
            log.warning("relay.database_unavailable", error=type(error).__name__)
            return 0
