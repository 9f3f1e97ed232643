"""Collectors and a real resolver over PostgreSQL: heartbeats, revocation, and those that keep nothing between runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from prw.errors import Code, PrwError
from prw_base.client import Retry
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant
from prw_sdk.cli.run import Way, push, run_sending
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.uplink import Drained, ResolverAddress, Uplink
from tests.resolver.collecting import CATALOG, Running, running
from tests.sdk import jobs
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer, serving

ROOT = Path(__file__).parents[2]
SOURCE = "ten_synth_a.src_one"
PAGES = "abcdef"
Rows = psycopg.Connection[dict[str, Any]]


@pytest.fixture
def site() -> Iterator[Site]:
    """A shop with six pages."""
    with serving() as made:
        for name in PAGES:
            made.serve(f"/p/{name}", page(f"page {name}"))
        index = "\n".join(made.url(f"/p/{name}") for name in PAGES)
        made.serve("/index.txt", answer(index.encode(), content_type="text/plain"))
        yield made


@pytest.fixture
async def resolver(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Running]:
    """A resolver that serves in this process."""
    async with running(resolver_database, tmp_path / "state") as made:
        yield made


@pytest.fixture
async def token(resolver: Running) -> str:
    """A collector's token."""
    grant = ClientGrant("ten_synth_a", CATALOG, "ci_one", COLLECTOR_SCOPES, "cw_one", (SOURCE,))
    return await resolver.token(grant)


@pytest.fixture
def there(resolver: Running, token: str) -> ResolverAddress:
    """The resolver as that collector calls it."""
    quickly = Retry(3, timedelta(milliseconds=10), timedelta(milliseconds=50))
    return ResolverAddress(
        resolver.target, lambda: token, worker="cw_one", instance="ci_one", retry=quickly
    )


@pytest.fixture
def superuser(resolver_database: dict[str, str]) -> Iterator[Rows]:
    """A connection that sees every tenant's rows."""
    dsn = resolver_database["superuser"]
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as conn:
        conn.execute("set search_path to resolver")
        yield conn


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """An empty spool."""
    made = Spool(tmp_path / "spool")
    yield made
    made.close()


def job(site: Site) -> SourceJob:
    """The shop as the source that is granted."""
    made = jobs.list_job(site)
    return replace(made, source=replace(made.source, source_id=SOURCE))


def items(superuser: Rows) -> list[str]:
    """The items of which the resolver has a capture, each once."""
    rows = superuser.execute("select distinct native_record_id as id from capture order by 1")
    return [row["id"] for row in rows]


async def anew(site: Site, there: ResolverAddress, folder: Path) -> Drained:
    """A run that knows nothing of the ones before."""
    spool = Spool(folder)
    try:
        way = Way(ephemeral=True)
        result = await run_sending([job(site)], spool, QUICK, there, unwatched, way)
    finally:
        spool.close()
    assert result.is_clean, result
    return result.drained


async def test_many_artifacts_travel_over_one_stream_to_the_resolver(
    site: Site, spool: Spool, there: ResolverAddress, superuser: Rows
) -> None:
    """Each is there, with its capture."""
    await collect([job(site)], spool, QUICK)
    assert await push(spool, there, unwatched) == Drained(submitted=len(PAGES))
    assert items(superuser) == list(PAGES)
    stored = superuser.execute("select count(*) as n from artifact").fetchone()
    assert stored is not None
    assert stored["n"] == len(PAGES)


async def test_a_collector_that_keeps_nothing_begins_where_the_last_one_ended(
    site: Site, there: ResolverAddress, superuser: Rows, tmp_path: Path
) -> None:
    """Its checkpoint is the resolver's, by compare-and-set."""
    assert await anew(site, there, tmp_path / "one") == Drained(submitted=6)
    rows = superuser.execute("select revision, state from collector_checkpoint").fetchall()
    assert [row["revision"] for row in rows] == [3]
    assert items(superuser) == list(PAGES)


EPHEMERAL = """
import asyncio, sys
from pathlib import Path
from types import SimpleNamespace
from dataclasses import replace
from prw_sdk.cli.run import Way, run_sending
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.uplink import ResolverAddress
from tests.sdk import jobs

folder, target, token, port, source = sys.argv[1:]
site = SimpleNamespace(port=int(port), url=lambda path: f"http://127.0.0.1:{port}{path}")
made = jobs.list_job(site)
job = replace(made, source=replace(made.source, source_id=source))
there = ResolverAddress(target, lambda: token, worker="cw_one", instance="ci_one")
way = Way(ephemeral=True)
asyncio.run(run_sending([job], Spool(Path(folder)), jobs.QUICK, there, unwatched, way))
"""


@pytest.mark.parametrize(
    "point",
    [
        "uplink.after_declare=kill@1",
        "uplink.mid_artifact=kill@3",
        "uplink.after_submit=kill@3",
        "uplink.after_advance=kill@1",
        "uplink.after_advance=kill@2",
        "collect.before_checkpoint=kill@2",
    ],
)
async def test_a_killed_collector_that_keeps_nothing_loses_nothing(
    site: Site,
    there: ResolverAddress,
    superuser: Rows,
    tmp_path: Path,
    point: str,
) -> None:
    """Whatever its folder held is gone; the next one passes over nothing (replay rule 4)."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", EPHEMERAL, str(tmp_path / "gone"), there.address),
        *(there.token(), str(site.port), SOURCE),
        cwd=ROOT,
        env=os.environ | {"PRW_FAULTS": point},
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == -signal.SIGKILL, err.decode()
    await anew(site, there, tmp_path / "next")
    assert items(superuser) == list(PAGES)


async def test_what_was_put_off_is_kept_by_the_resolver(
    site: Site, there: ResolverAddress, tmp_path: Path
) -> None:
    """With its attempts; the next run has them though it knows nothing else."""
    site.serve("/p/b", answer(status=500))
    spool = Spool(tmp_path / "one")
    way = Way(ephemeral=True)
    await run_sending([job(site)], spool, QUICK, there, unwatched, way)
    spool.close()
    second = Spool(tmp_path / "two")
    await run_sending([job(site)], second, QUICK, there, unwatched, way)
    (waiting,) = second.ledger.troubled()
    second.close()
    assert (waiting.key.native_id, waiting.verdict.code) == ("b", "UPSTREAM_500")


async def test_a_run_is_reported_and_its_failures_are_counted(
    site: Site, spool: Spool, there: ResolverAddress
) -> None:
    """`consecutive_failures` and `last_success` are those of if_heartbeat."""
    site.serve("/index.txt", answer(status=503))
    for _ in range(2):
        await run_sending([job(site)], spool, QUICK, there, unwatched)
    async with Uplink(there, spool) as uplink:
        pulse = await uplink.heartbeat()
        assert pulse is not None
        assert (pulse.consecutive_failures, pulse.last_success) == (2, None)
        site.serve("/index.txt", answer(f"{site.url('/p/a')}".encode(), content_type="text/plain"))
        result = await run_sending([job(site)], spool, QUICK, there, unwatched)
        assert result.is_clean
        pulse = await uplink.heartbeat()
        assert pulse is not None
        assert pulse.consecutive_failures == 0
        assert pulse.last_success is not None


async def test_heartbeats_bring_the_receipts_of_what_was_sent(
    site: Site, spool: Spool, there: ResolverAddress
) -> None:
    """In one call for all."""
    await collect([job(site)], spool, QUICK)
    await push(spool, there, unwatched)
    async with Uplink(there, spool) as uplink:
        await uplink.heartbeat()
    assert sum(spool.ledger.receipt_statuses().values()) == len(PAGES)


async def test_a_revoked_collector_is_stopped_and_keeps_what_it_has(
    site: Site, spool: Spool, there: ResolverAddress, resolver: Running
) -> None:
    """401 CREDENTIAL_REVOKED; provisioned again, it sends everything."""
    await collect([job(site)], spool, QUICK)
    await access.revoke_client(resolver.parts.db, "ten_synth_a", "ci_one")
    with pytest.raises(PrwError) as caught:
        await push(spool, there, unwatched)
    assert caught.value.code is Code.CREDENTIAL_REVOKED
    grant = ClientGrant("ten_synth_a", CATALOG, "ci_one", COLLECTOR_SCOPES, "cw_one", (SOURCE,))
    token = await resolver.token(grant)
    again = replace(there, token=lambda: token)
    assert await push(spool, again, unwatched) == Drained(submitted=len(PAGES))
