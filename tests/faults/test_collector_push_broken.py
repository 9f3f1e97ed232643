"""The real resolver loses its database, its connection or its trust in a collector that is pushing to it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from prw.errors import Code, PrwError
from prw_base.client import NEVER, Retry
from prw_base.server.postgres import Cluster
from prw_sdk.spool.model import CaptureState
from tests.faults.pushing import ITEMS, MARK, Pushing, opened, pushing
from tests.sdk.sending import states
from tests.support import postgres
from tests.support.cutting import cutting_before
from tests.support.waiting import until_sync

CUTS = (("declaration", False), ("bytes", False), ("submission", False), ("submission", True))
"""What passes when the connection is cut, and whether the resolver still hears it."""
PATIENT = Retry(400, timedelta(milliseconds=20), timedelta(milliseconds=100))


@pytest.fixture
async def one(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Pushing]:
    """A resolver that serves, and a collector with a token."""
    async with pushing(resolver_database, tmp_path) as running:
        yield running


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A PostgreSQL server of the test's own, which it may stop."""
    folder = postgres.make_state_folder()
    try:
        yield postgres.open_test_cluster(folder)
    finally:
        postgres.remove_state_folder(folder)


def stop_hard(cluster: Cluster) -> None:
    """Stop PostgreSQL at once (immediate), as by a crash."""
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    until_sync(lambda: cluster.pid is None)


@pytest.mark.skipif(postgres.DSN_VARIABLE in os.environ, reason="that server is not ours to stop")
async def test_a_push_outlives_a_database_that_is_stopped_hard(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    """It goes on by itself once the database is back, or ends with a reason to try again: stored once either way."""
    with postgres.fresh_database(own_cluster, postgres.RESOLVER) as dsns:
        async with pushing(dsns, tmp_path) as one:
            await _ends_and_is_taken_up(one, own_cluster)
            await _goes_on_by_itself(one, own_cluster)


async def _ends_and_is_taken_up(one: Pushing, cluster: Cluster) -> None:
    folder = await one.fill()
    with pytest.raises(PrwError) as ended:
        await one.push(folder, NEVER, at=ITEMS // 2, then=lambda: stop_hard(cluster))
    assert ended.value.retryable
    await asyncio.to_thread(postgres.open_test_cluster, cluster.folder.parent)
    await one.check_resumed(folder, PATIENT)


async def _goes_on_by_itself(one: Pushing, cluster: Cluster) -> None:
    folder = await one.fill()

    def restart() -> None:
        stop_hard(cluster)
        postgres.open_test_cluster(cluster.folder.parent)

    await one.push(folder, PATIENT, at=ITEMS // 2, then=restart)
    one.check_whole(folder)


async def test_a_push_whose_connection_is_cut_is_taken_up(one: Pushing) -> None:
    """Replay rules 1 and 2: by the same push where it may try again, else by the next; also if an answer was lost."""
    host, _, port = one.address.rpartition(":")
    async with cutting_before(host, int(port)) as (cutter, way):
        for where, is_heard in CUTS:
            for retry in (NEVER, PATIENT):
                folder = await one.fill()
                cutter.arm(_word(folder, where), before=not is_heard)
                with suppress(PrwError) if retry is NEVER else nullcontext():
                    await one.push(folder, retry, f"127.0.0.1:{way}")
                await one.check_resumed(folder)
        assert cutter.cuts == 2 * len(CUTS)


def _word(folder: Path, where: str) -> bytes:
    """What passes the wire at that step of the last capture."""
    with opened(folder) as spool:
        last = list(spool.ledger.captures())[-1]
        if where == "declaration":
            return spool.capture(last).parts[0].sha256.encode()
        return MARK if where == "bytes" else f"/p/{last.key.native_id}".encode()


async def test_a_collector_that_is_revoked_while_it_pushes_stops_and_loses_nothing(
    one: Pushing,
) -> None:
    """Replay rule 14: it ends with CREDENTIAL_REVOKED, and with a new token the rest is sent."""
    folder = await one.fill()
    with pytest.raises(PrwError) as ended:
        await one.push(folder, PATIENT, at=ITEMS // 2, then=lambda: asyncio.run(one.revoke()))
    assert ended.value.code is Code.CREDENTIAL_REVOKED
    with opened(folder) as spool:
        found = states(spool)
    assert found[CaptureState.KEPT] > 0
    assert set(found) <= {CaptureState.KEPT, CaptureState.SUBMITTED}
    assert sum(found.values()) == ITEMS
    await one.provision()
    await one.check_resumed(folder)
