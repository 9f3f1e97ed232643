"""kill -9 of PostgreSQL under writers, relay and readers of a stream: all of them go on by themselves (T8)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from prw.errors import Code, PrwError
from prw_base.server.database import Database
from prw_base.server.postgres import Cluster, start
from prw_resolver.stream.model import Stream
from prw_resolver.stream.relay import Relay
from tests.resolver.catalogue import Rooms, rooms
from tests.resolver.writing import CATALOG, TENANT, introduction
from tests.support import invariants, kills, postgres
from tests.support.waiting import until

T = TypeVar("T")
STREAM = Stream(TENANT, CATALOG, 1)
ME = "product-1"
POSITIONS_VARIABLE = "PRW_SOAK_POSITIONS"
"""How many positions the soak commits; 30,000 where it is not set."""

PATIENCE = timedelta(seconds=60)
AWAY = frozenset({Code.UNAVAILABLE, Code.OVERLOADED})


async def asked_again(work: Callable[[], Awaitable[T]]) -> T:
    """What it gives once the database is back, as any caller asks again."""
    while True:
        try:
            return await work()
        except PrwError as error:
            if error.code not in AWAY:
                raise
        except psycopg.OperationalError:
            pass
        await asyncio.sleep(0.05)


@dataclass(slots=True)
class Reader:
    """Reads every position once, in order; its digest chains all that it was ever given (I7)."""

    name: str
    at: int = 0
    digest: bytes = b""

    async def follow(self, held: Rooms, positions: int) -> None:
        """Read and report up to a position: no page has a hole (I5), nothing is reported that was not read (I6)."""
        await asked_again(lambda: held.feed.register(TENANT, CATALOG, self.name, ME))
        while self.at < positions:
            page = await asked_again(lambda: held.feed.page(STREAM, self.at))
            for change in page.changes:
                assert change.position == self.at + 1
                self.at, self.digest = change.position, self._chain(change.event)
            kept, _ = await asked_again(lambda: held.feed.report(STREAM, self.name, ME, self.at))
            assert kept == self.at
            if not page.changes:
                await held.signal.wait(held.signal.listen(STREAM), 0.05)

    def _chain(self, event: bytes) -> bytes:
        return hashlib.sha256(self.digest + event).digest()


async def write(held: Rooms, writer: int, changes: int) -> None:
    """Commit so many changes of three positions, each asked again until it has its answer."""
    for number in range(changes):
        change = introduction(held.vocabulary, f"{writer}-{number}")
        answer = await asked_again(lambda change=change: held.committer.commit(change))  # type: ignore[misc]
        assert answer.last_position - answer.first_position == 2


async def suffer(folder: Path, positions: int, strikes: int, choice: random.Random) -> None:
    """Kill the server at moments of the stream's own progress while it is written, relayed and read."""
    writers = 16
    each = -(-positions // (3 * writers))
    total = each * 3 * writers
    cluster = start(folder / "state")
    try:
        with postgres.fresh_database(cluster, postgres.RESOLVER) as dsns:
            async with (
                rooms(dsns["resolver_app"], folder) as held,
                await Database.open(dsns["resolver_relay"], 1, 1) as relaying,
            ):
                stop = asyncio.Event()
                relay = Relay(relaying, poll=timedelta(milliseconds=50))
                readers = [Reader("one"), Reader("two")]
                work = asyncio.gather(
                    *(write(held, writer, each) for writer in range(writers)),
                    *(reader.follow(held, total) for reader in readers),
                )
                relayed = asyncio.create_task(relay.run(stop))
                for at in sorted(choice.sample(range(total // 10, total * 9 // 10), strikes)):
                    await until(partial(_is_due, readers[0], at, work), PATIENCE)
                    strike(cluster)
                    assert start(folder / "state").dsn == cluster.dsn
                await work
                unmarked = "select count(*) from resolver.outbox where published_at is null"
                await until(lambda: _one(dsns["superuser"], unmarked) == 0, PATIENCE)
                stop.set()
                await relayed
            assert {(reader.at, reader.digest) for reader in readers} == {
                (total, readers[0].digest)
            }
            invariants.assert_stream_holds(dsns["superuser"])
    finally:
        start(folder / "state").stop()


def _is_due(reader: Reader, at: int, work: asyncio.Future[Any]) -> bool:
    return reader.at >= at or work.done()


def strike(cluster: Cluster) -> None:
    """SIGKILL to the postmaster, as the machine's loss of power would be to all of its sessions."""
    assert cluster.pid is not None
    os.kill(cluster.pid, signal.SIGKILL)


def _one(dsn: str, query: str) -> int:
    with psycopg.connect(dsn) as conn:
        row = conn.execute(query.encode()).fetchone()
    return 0 if row is None else int(row[0])


@pytest.mark.soak
async def test_t8_a_stream_outlives_its_database(tmp_path: Path) -> None:
    """T8, I1, I2, I5, I6, I7: killed once at a moment of the seed's choice; nothing acknowledged or read is lost."""
    await suffer(tmp_path, 240, 1, random.Random(kills.seed()))


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
async def test_t8_a_stream_outlives_its_database_again_and_again(tmp_path: Path) -> None:
    """T8: the same with a kill every so often, to as many positions as `PRW_SOAK_POSITIONS` says."""
    positions = int(os.environ.get(POSITIONS_VARIABLE) or 30_000)
    await suffer(
        tmp_path, positions, max(3, min(40, positions // 10_000)), random.Random(kills.seed())
    )
