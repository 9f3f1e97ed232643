"""A small database of these tests' own, migrated from ``tests/base/sample``."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from prw_base.server.database import Database
from prw_base.server.postgres import Cluster
from tests.support.postgres import Deployable, fresh_database

SAMPLE = Deployable("sample", "tests.base.sample", ("product_app",))


@pytest.fixture
def sample_database(cluster: Cluster) -> Iterator[dict[str, str]]:
    """DSNs by role of a fresh copy."""
    with fresh_database(cluster, SAMPLE) as dsns:
        yield dsns


@pytest.fixture
async def database(sample_database: dict[str, str]) -> AsyncIterator[Database]:
    """A pool as a server would open it."""
    async with await Database.open(sample_database["product_app"], max_size=4) as opened:
        yield opened


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """Logging is of the process; another test finds it as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
