"""The pruner: takes away what everybody has, and says aloud who holds the rest (AW-03, retention).

Works for every tenant as `resolver_pruner`, whose only right is to call the function that knows all bounds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import psycopg
import structlog

from prw.errors import PrwError
from prw_base.server.database import CONSUMER_TIMEOUT, Database
from prw_resolver.stream import store
from prw_resolver.stream.epoch import Epoch
from prw_resolver.stream.failures import refusals_typed
from prw_resolver.stream.model import Stream
from prw_resolver.stream.retained import Hold, PruneSettings

log = structlog.get_logger(__name__)


class Pruner:
    """Prunes round by round; a database that does not answer is asked again in the next one."""

    def __init__(self, database: Database, epoch: Epoch, settings: PruneSettings) -> None:
        self._database = database
        self._epoch = epoch
        self._settings = settings

    async def run(self, stop: asyncio.Event) -> None:
        """Prune until the stop."""
        while not stop.is_set():
            try:
                await self.round(stop)
            except (psycopg.OperationalError, PrwError) as error:
                log.warning("pruner.interrupted", error=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._settings.interval.total_seconds())

    async def round(self, stop: asyncio.Event) -> int:
        """Prune every stream of the trusted epoch as far as it goes; returns how many changes went."""
        pruned = 0
        for stream in await self._streams():
            while not stop.is_set() and (gone := await self.prune(stream)):
                pruned += gone
            self._alarm(stream, await self._holds(stream))
        return pruned

    async def prune(self, stream: Stream) -> int:
        """Prune one batch; returns how many changes went. Raises EPOCH_FENCED."""
        self._epoch.require(stream.history_epoch)
        age, batch = self._settings.age, self._settings.batch
        with refusals_typed():
            async with self._database.transaction(stream.tenant_id, CONSUMER_TIMEOUT) as conn:
                return await store.prune(conn, stream, age, batch)

    async def _streams(self) -> list[Stream]:
        async with self._database.transaction(None, read_only=True) as conn:
            return await store.streams_of_epoch(conn, self._epoch.current())

    async def _holds(self, stream: Stream) -> list[Hold]:
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            return await store.holds(conn, stream)

    def _alarm(self, stream: Stream, holds: Sequence[Hold]) -> None:
        for hold in holds:
            if exceeded := self._settings.budget.exceeded(hold):
                log.warning(
                    "retention.blocked",
                    tenant_id=stream.tenant_id,
                    catalog_id=stream.catalog_id,
                    kind=hold.kind,
                    holder=hold.holder,
                    status=hold.status,
                    over=exceeded,
                    position=hold.position,
                    positions=hold.held,
                    bytes=hold.held_bytes,
                    seconds=hold.age.total_seconds(),
                )
