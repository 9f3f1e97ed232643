"""Fixtures: a pool as the server's login, an applier, a catalogue, a resolver's stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from prw_base import faults
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.apply.service import Applier, open_live
from prw_product.follow.decode import decode
from prw_product.serve.service import Catalogue
from tests.product.events import CATALOG, EPOCH, TENANT
from tests.product.rpc import Resolver

SCOPE = Scope(TENANT, CATALOG)


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    """No fault outlives its test."""
    yield
    faults.disarm()


@pytest.fixture
async def database(product_database: dict[str, str]) -> AsyncIterator[Database]:
    """A pool of the login ``product_app``."""
    async with await Database.open(product_database["product_app"], max_size=4) as opened:
        yield opened


@pytest.fixture
async def applier(database: Database) -> Applier:
    """An applier to the first generation."""
    live = await open_live(database, SCOPE, EPOCH)
    return Applier(database, decode, live.generation)


@pytest.fixture
def catalogue(database: Database) -> Catalogue:
    """The public queries."""
    return Catalogue(database, SCOPE)


@pytest.fixture
async def resolver() -> AsyncIterator[Resolver]:
    """A resolver's stream, empty and started."""
    served = Resolver()
    await served.start()
    yield served
    await served.stop()
