"""A resolver with a history, a product that follows it, and rebuilds of what it projects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc

from prw.errors import PrwError
from prw_base.client import Retry, open_channel
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.follow.client import connector as follow_connector
from prw_product.follow.model import Waits
from prw_product.follow.service import Follower, FollowSettings
from prw_product.publish.model import Generation
from prw_product.publish.store import find_serving
from prw_product.rebuild.client import Connect, connector
from prw_product.rebuild.model import Progress
from prw_product.rebuild.service import Rebuilder, RebuildSettings, unwatched
from prw_resolver.export.service import ExportSettings
from tests.faults.exporting import TINY, Exporting, exporting
from tests.product import looking
from tests.resolver.calling import served
from tests.resolver.catalogue import NOON, SCOPE, record
from tests.support.waiting import until

QUICK = Retry(attempts=4, base=timedelta(milliseconds=10), cap=timedelta(milliseconds=50))
WAITS = Waits(timedelta(milliseconds=20), timedelta(milliseconds=100))
HOUR = timedelta(hours=1)
HEADS = (
    "applied_revision",
    "merchant",
    "source",
    "inventory",
    "public_item",
    "public_attribute",
    "released_listing",
    "released_mapping",
    "public_listing",
)
"""What a rebuild has exactly as the live projection has it. Of states by revision it has those that count."""


@dataclass
class Rebuilding:
    """The resolver, the product's database, and ways to work them."""

    exporting: Exporting
    dsns: dict[str, str]
    database: Database
    target: str
    hours: int = 0

    @property
    def dsn(self) -> str:
        """The product's superuser."""
        return self.dsns["superuser"]

    def channel(self) -> grpc.aio.Channel:
        """A channel to the resolver as the product's client."""
        return open_channel(self.target, "rebuilder")

    def connect(self) -> Connect:
        """What opens the resolver's exports."""
        return connector(self.channel, "product", QUICK)

    def rebuilder(self, kind: type[Rebuilder] = Rebuilder, watch: Any = unwatched) -> Rebuilder:
        """What rebuilds; pages are small."""
        settings = RebuildSettings(
            SCOPE, page_size=4, poll=timedelta(milliseconds=10), readers=timedelta(seconds=5)
        )
        return kind(self.database, connector(self.channel, "product", QUICK), settings, watch)

    def follower(self, consumer_id: str = "product", rebuild: Any = None) -> Follower:
        """What follows live."""
        connect = follow_connector(self.channel, consumer_id)
        settings = FollowSettings(SCOPE, 5, WAITS, rebuild=rebuild)
        return Follower(self.database, connect, settings)

    @asynccontextmanager
    async def following(
        self, consumer_id: str = "product", rebuild: Any = None
    ) -> AsyncIterator[Follower]:
        """A follower at work."""
        follower = self.follower(consumer_id, rebuild)
        task = asyncio.create_task(follower.run())
        try:
            yield follower
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, PrwError):
                await task

    async def follow_to_end(self, consumer_id: str = "product") -> None:
        """Follow until everything is applied."""
        async with self.following(consumer_id) as follower:
            await until(lambda: follower.standing.progress == self.cursor > 0)

    @property
    def cursor(self) -> int:
        """The stream's last position."""
        return int(self.exporting.held.one("select max(position) from resolver.stream_cursor"))

    async def observe(self, price: str, *names: str) -> None:
        """See every listing at a price, later than before, and publish what that changes."""
        self.hours += 1
        held = self.exporting.held.rooms
        for name in names:
            seen = record(
                held.vocabulary,
                name,
                capture_id=f"cap_{name}_{self.hours}",
                observed_at=NOON + self.hours * HOUR,
                merchant=f"Shop {name[0]}",
                core__gtin=f"G-{name[-1]}",
                core__title=f"SSD {name} seen {self.hours} times",
                storage__capacity="1000000000000",
                offer__price=price,
                offer__availability="in_stock",
            )
            job = f"{seen.capture_id}:identify:0"
            await held.identifier.identify(seen, held.vocabulary, job_id=job, last=True)
        while await held.releases.release_due(SCOPE, held.vocabulary):
            pass

    async def serving(self) -> Generation:
        """The generation that serves."""
        async with self.database.transaction(SCOPE.tenant_id, read_only=True) as conn:
            found = await find_serving(conn, Scope(SCOPE.tenant_id, SCOPE.catalog_id))
        assert found is not None
        return found

    def heads(self, generation: int) -> dict[str, Any]:
        """What must be the same in a rebuilt projection (I9)."""
        projected = looking.projection(self.dsn, generation)
        return {table: projected[table] for table in HEADS}

    def schemas(self) -> list[str]:
        """The generations that have tables."""
        query = "select nspname from pg_namespace where nspname like 'projection%%' order by 1"
        return [str(row[0]) for row in looking.rows(self.dsn, query)]

    @asynccontextmanager
    async def beside(self, dsns: dict[str, str]) -> AsyncIterator[Rebuilding]:
        """The same resolver, and another product's database."""
        async with await Database.open(dsns["product_app"], max_size=4) as database:
            yield replace(self, dsns=dsns, database=database)

    @property
    def leases(self) -> int:
        """How many leases last."""
        query = "select count(*) from resolver.stream_lease where ended_at is null and expires_at > now()"
        return int(self.exporting.held.one(query))


NAMES = ("a1", "b1", "a2", "b3")
"""Listings of two shops; the first two are one article."""


@asynccontextmanager
async def rebuilding(
    resolver: dict[str, str],
    product: dict[str, str],
    folder: Path,
    *,
    empty: bool = False,
    settings: ExportSettings = TINY,
) -> AsyncIterator[Rebuilding]:
    """Four listings of three articles, seen twice and published."""
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(exporting(resolver, folder, 0, settings))
        serving = await stack.enter_async_context(served(made.held.rooms, exports=made.exports))
        database = await stack.enter_async_context(
            await Database.open(product["product_app"], max_size=6)
        )
        target = f"127.0.0.1:{serving.server.port}"
        world = Rebuilding(made, product, database, target)
        if not empty:
            await world.observe("10.00", *NAMES)
            await world.observe("11.00", *NAMES)
        yield world


def recorder() -> tuple[list[Progress], Any]:
    """A watch and what it was told."""
    told: list[Progress] = []
    return told, told.append
