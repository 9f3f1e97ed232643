"""kill -9 at every fault point: started again, the projection ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process

import pytest

from prw_base.server.database import Database
from prw_base.server.postgres import Cluster
from prw_product.apply.service import Applier, open_live
from prw_product.follow.decode import decode
from tests.product import looking
from tests.product.conftest import SCOPE
from tests.product.events import CATALOG, EPOCH, TENANT, deliveries, story
from tests.product.rpc import Resolver
from tests.support import postgres
from tests.support.waiting import until

_FAULTS = (
    "apply.mid_projection=kill@2",
    "apply.before_commit=kill@1",
    "apply.before_commit=kill@4",
    "apply.after_commit=kill@1",
    "apply.after_commit=kill@3",
    "follow.after_report=kill@2",
)
_RUN = "from prw_base.cli import main; main()"


async def _start(resolver: Resolver, dsn: str, faults: str = "") -> Process:
    environment = os.environ | {
        "PRW_FAULTS": faults,
        "PRW_PRODUCT_DATABASE_DSN": dsn,
        "PRW_PRODUCT_TOKEN": "token",
        "PRW_PRODUCT_TENANT_ID": TENANT,
        "PRW_PRODUCT_CATALOG_ID": CATALOG,
        "PRW_PRODUCT_BATCH_SIZE": "2",
        "PRW_PRODUCT_RESOLVER_ADDRESS": f"127.0.0.1:{resolver.port}",
    }
    command = (sys.executable, "-c", _RUN, "product", "follow")
    return await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=DEVNULL, stderr=DEVNULL
    )


@pytest.mark.parametrize("fault", _FAULTS)
async def test_a_follower_killed_anywhere_converges(
    resolver: Resolver,
    cluster: Cluster,
    product_database: dict[str, str],
    fault: str,
) -> None:
    """At no instruction is anything lost, doubled or reported too early (T4, I3, I6, I8)."""
    dsn = product_database["superuser"]
    resolver.changes = story()
    killed = await _start(resolver, product_database["product_app"], fault)
    assert await killed.wait() == -9
    assert resolver.reported <= looking.progress(dsn)
    looking.check_invariants(dsn)
    again = await _start(resolver, product_database["product_app"])
    await until(lambda: resolver.reported == 12)
    again.terminate()
    assert await again.wait() == 0
    looking.check_invariants(dsn)
    assert looking.projection(dsn) == await _undisturbed(cluster)


async def _undisturbed(cluster: Cluster) -> dict[str, list[tuple[object, ...]]]:
    """The projection of the same history, applied in one go to a database of its own."""
    with postgres.fresh_database(cluster, postgres.PRODUCT) as dsns:
        async with await Database.open(dsns["product_app"], max_size=2) as database:
            live = await open_live(database, SCOPE, EPOCH)
            await Applier(database, decode, live.generation).apply(deliveries(story()))
        return looking.projection(dsns["superuser"])
