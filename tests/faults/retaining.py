"""A stream with changes, its pruner, and locks that are held so that two contenders meet in a known order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from prw_base.server.database import Database
from prw_resolver.stream.model import Stream
from prw_resolver.stream.pruner import Pruner
from prw_resolver.stream.relay import Relay
from prw_resolver.stream.retained import Budget, PruneSettings
from prw_resolver.stream.retention import Retention
from tests.resolver.catalogue import Rooms, rooms
from tests.resolver.writing import CATALOG, TENANT, introduction
from tests.support.waiting import until

T = TypeVar("T")
STREAM = Stream(TENANT, CATALOG, 1)
ME = "product-1"
PROMPT = PruneSettings(timedelta(0), timedelta(seconds=1), Budget(5, 10**9, timedelta(days=1)))
_WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@dataclass(frozen=True, slots=True)
class Retaining:
    """A stream of published changes, and everybody who may hold or take them."""

    dsns: dict[str, str]
    rooms: Rooms
    retention: Retention
    relay: Relay
    pruner: Pruner

    async def fill(self, number: int, start: int = 0) -> None:
        """Commit and publish so many changes, three positions each."""
        for name in range(start, start + number):
            await self.rooms.committer.commit(introduction(self.rooms.vocabulary, str(name)))
        while await self.relay.mark():
            pass

    async def register(self, consumer_id: str = "product") -> None:
        """Register a consumer of `ME`."""
        await self.rooms.feed.register(TENANT, CATALOG, consumer_id, ME)

    def short(self, lifetime: timedelta) -> Retention:
        """Retention control whose leases last so long."""
        return Retention(self.rooms.database, Trusted(), lifetime=lifetime)

    def one(self, query: str) -> Any:
        """The one value that a superuser's query gives."""
        with psycopg.connect(self.dsns["superuser"]) as conn:
            row = conn.execute(query.encode()).fetchone()
        return None if row is None else row[0]

    @property
    def pruned_through(self) -> int:
        """How far the stream is pruned."""
        return int(self.one("select pruned_through from resolver.stream_retention"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the retention lock within the block."""
        with psycopg.connect(self.dsns["superuser"]) as conn:
            conn.execute("select from resolver.stream_retention for update")
            yield

    async def queue(self, *contenders: Callable[[], Awaitable[Any]]) -> list[asyncio.Future[Any]]:
        """Start each once the one before waits for a lock, so that they get it in this order."""
        started: list[asyncio.Future[Any]] = []
        for contender in contenders:
            started.append(asyncio.ensure_future(contender()))
            await until(lambda: self.one(_WAITING) == len(started))
        return started


class Trusted:
    """A control plane of epoch 1."""

    def current(self) -> int:
        """The epoch."""
        return 1

    def require(self, history_epoch: int) -> None:
        """Only that one."""
        assert history_epoch == 1


@asynccontextmanager
async def retaining(
    dsns: dict[str, str], folder: Path, changes: int = 4
) -> AsyncIterator[Retaining]:
    """So many changes, three positions each, all of them published and old enough."""
    async with (
        rooms(dsns["resolver_app"], folder) as held,
        await Database.open(dsns["resolver_relay"], 1, 1) as relay,
        await Database.open(dsns["resolver_pruner"], 1, 1) as pruner,
    ):
        made = Retaining(
            dsns,
            held,
            Retention(held.database, Trusted()),
            Relay(relay),
            Pruner(pruner, Trusted(), PROMPT),
        )
        await made.fill(changes)
        yield made
