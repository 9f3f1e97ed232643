"""Fixtures of the resolver's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.resolver.collecting import Running, running


@pytest.fixture
async def resolver(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Running]:
    """A resolver with two tenants that serves in this process."""
    async with running(resolver_database, tmp_path / "state") as serving:
        yield serving


@pytest.fixture
def superuser(resolver_database: dict[str, str]) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A connection that sees every tenant's rows, for what a test asserts."""
    dsn = resolver_database["superuser"]
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as conn:
        conn.execute("set search_path to resolver")
        yield conn
