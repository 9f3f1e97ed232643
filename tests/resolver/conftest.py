"""Fixtures of the resolver's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant
from prw_resolver.access.service import provision_client
from prw_resolver.bootstrap import build_issuer, open_parts
from tests.resolver.collecting import CATALOG, Running, found, running, settings_for


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


@pytest.fixture
async def token(resolver_database: dict[str, str], tmp_path: Path) -> str:
    """A collector's token, in a resolver that is set up and not running."""
    settings = settings_for(resolver_database, tmp_path)
    async with open_parts(settings, resolver_database["resolver_app"]) as parts:
        await found(parts, "ten_synth_a")
        sources = ("ten_synth_a.src_one",)
        grant = ClientGrant("ten_synth_a", CATALOG, "ci_one", COLLECTOR_SCOPES, "cw_one", sources)
        return (await provision_client(build_issuer(settings, parts.db), grant)).token
