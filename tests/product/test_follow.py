"""Following a stream over real gRPC, with everything that can go wrong between the two sides."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from prw.changes.v1 import change_pb2 as pb
from prw.errors import Code, PrwError
from prw_base.client import open_channel
from prw_base.server.database import Database
from prw_product.follow.client import connector
from prw_product.follow.model import Waits
from prw_product.follow.service import Follower, FollowSettings
from tests.product import looking
from tests.product.conftest import SCOPE
from tests.product.events import change, item, mapping, story
from tests.product.rpc import Resolver
from tests.support.waiting import until

_QUICK = Waits(timedelta(milliseconds=20), timedelta(milliseconds=100))


def follower_of(database: Database, resolver: Resolver, batch_size: int = 3) -> Follower:
    """A follower of ``resolver`` that waits little."""
    channel = partial(open_channel, f"127.0.0.1:{resolver.port}", "token")
    settings = FollowSettings(SCOPE, batch_size, _QUICK)
    return Follower(database, connector(channel, "product"), settings)


@asynccontextmanager
async def following(database: Database, resolver: Resolver) -> AsyncIterator[Follower]:
    """A follower at work."""
    follower = follower_of(database, resolver)
    task = asyncio.create_task(follower.run())
    try:
        yield follower
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, PrwError):
            await task


async def _stops(database: Database, resolver: Resolver) -> PrwError:
    with pytest.raises(PrwError) as stopped:
        async with asyncio.timeout(20):
            await follower_of(database, resolver).run()
    return stopped.value


async def _reached(dsn: str, position: int) -> None:
    await until(lambda: looking.progress(dsn) == position)


async def test_changes_are_followed_as_they_are_committed(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """From the beginning, then live, with every commit reported and never more than it (I6)."""
    dsn = product_database["superuser"]
    resolver.changes = story()[:7]
    async with following(database, resolver):
        await _reached(dsn, 7)
        resolver.append(*story()[7:])
        await _reached(dsn, 12)
        await until(lambda: resolver.reported == 12)
    assert resolver.reports == sorted(set(resolver.reports))
    looking.check_invariants(dsn)


async def test_the_resolvers_restart_is_survived(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """The stream is opened again from durable progress, however long the other side was away."""
    dsn = product_database["superuser"]
    resolver.changes = story()[:5]
    async with following(database, resolver) as follower:
        await _reached(dsn, 5)
        await resolver.stop()
        await until(lambda: follower.standing.failures >= 3)
        resolver.changes = story()
        await resolver.start()
        await _reached(dsn, 12)
    assert resolver.streams[0] == 0
    assert set(resolver.streams[1:]) == {5}


async def test_lost_database_connections_are_survived(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """What PostgreSQL does to our connections costs a reconnect, and nothing else (T8)."""
    dsn = product_database["superuser"]
    resolver.changes = story()[:5]
    async with following(database, resolver):
        await _reached(dsn, 5)
        for at in range(5, 12):
            _terminate(dsn)
            resolver.append(story()[at])
            await _reached(dsn, at + 1)
    looking.check_invariants(dsn)


def _terminate(dsn: str) -> None:
    query = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and usename = 'product_app'"
    )
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(query)


async def test_a_gap_is_filled_by_asking(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """What a stream leaves out is fetched with ListChanges, and nothing is skipped."""
    dsn = product_database["superuser"]
    resolver.changes = story()
    resolver.deliver = lambda batch: [c for c in batch if c.position not in (2, 3, 8)]
    async with following(database, resolver):
        await _reached(dsn, 12)
    assert resolver.listed
    looking.check_invariants(dsn)


async def test_a_gap_that_cannot_be_filled_is_asked_for_again(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """A missing position holds progress for as long as it is missing; no timeout skips it."""
    dsn = product_database["superuser"]
    resolver.changes = story()
    resolver.deliver = lambda batch: [c for c in batch if c.position != 4]
    resolver.unlisted = {4}
    async with following(database, resolver):
        await until(lambda: len(resolver.listed) >= 3)
        assert looking.progress(dsn) == 3
        resolver.unlisted = set()
        await _reached(dsn, 12)


async def test_reordered_and_doubled_batches_end_the_same(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """Neither order nor once is assumed of a stream."""
    chance = random.Random(7)

    def shuffled(batch: list[pb.Change]) -> list[pb.Change]:
        doubled = [*batch, *batch[:1]]
        chance.shuffle(doubled)
        return doubled

    dsn = product_database["superuser"]
    resolver.changes = story()
    resolver.deliver = shuffled
    async with following(database, resolver):
        await _reached(dsn, 12)
    looking.check_invariants(dsn)


async def test_a_lost_report_is_made_up_for(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """An interrupted report keeps more events than needed, until the next session reports."""
    resolver.changes = story()
    resolver.refusals["report"] = [PrwError(Code.UNAVAILABLE, "gone for now")] * 2
    async with following(database, resolver):
        await until(lambda: resolver.reported == 12)
    assert looking.progress(product_database["superuser"]) == 12


async def test_a_missing_dependency_holds_what_is_reported(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """Retention protects all that a parked position needs: reports stay below it (T6)."""
    changes = [change(1, item("itm_1")), change(2, mapping("lst_1", "itm_9"))]
    resolver.changes = [*changes, change(3, item("itm_2"))]
    dsn = product_database["superuser"]
    async with following(database, resolver):
        await until(lambda: looking.outcomes(dsn).get(3) == "applied")
        await until(lambda: resolver.reported == 1)
    assert looking.progress(dsn) == 1


@pytest.mark.parametrize("code", [Code.CURSOR_AHEAD, Code.CURSOR_PRUNED, Code.CREDENTIAL_REVOKED])
async def test_what_asking_again_cannot_change_stops(
    database: Database, resolver: Resolver, code: Code
) -> None:
    """A typed stop with a message for an operator, never a silent reset."""
    resolver.refusals["stream"] = [PrwError(code, "no")]
    stopped = await _stops(database, resolver)
    assert stopped.code is code
    assert "progress 0" in stopped.message


@pytest.mark.parametrize("code", [Code.SLOW_CONSUMER, Code.OVERLOADED, Code.INTERNAL])
async def test_what_may_pass_is_tried_again(
    database: Database, resolver: Resolver, product_database: dict[str, str], code: Code
) -> None:
    """A slow moment or another's defect costs a wait."""
    resolver.changes = story()
    resolver.refusals["stream"] = [PrwError(code, "not now")] * 2
    async with following(database, resolver):
        await _reached(product_database["superuser"], 12)


async def test_a_fence_is_believed_from_the_control_plane_only(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """EPOCH_FENCED with an unchanged epoch passes; with a newer one it stops for a rebuild."""
    dsn = product_database["superuser"]
    resolver.changes = story()[:5]
    resolver.refusals["stream"] = [PrwError(Code.EPOCH_FENCED, "no lease")]
    async with following(database, resolver):
        await _reached(dsn, 5)
    assert resolver.asked_epoch == 1
    resolver.epoch += 1
    stopped = await _stops(database, resolver)
    assert stopped.code is Code.EPOCH_FENCED
    assert looking.progress(dsn) == 5


async def test_a_change_of_a_newer_epoch_makes_it_ask_and_stop(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """A newer epoch in a message is asked about; the control plane's word stops (AW-04)."""
    dsn = product_database["superuser"]
    resolver.changes = story()[:5]
    async with following(database, resolver) as follower:
        await _reached(dsn, 5)
        resolver.epoch += 1
        resolver.append(change(6, item("itm_new", epoch=resolver.epoch)))
        await until(lambda: follower.standing.stopped is not None)
    assert follower.standing.stopped is not None
    assert follower.standing.stopped.code is Code.EPOCH_FENCED
    assert looking.rows(dsn, "select item_id from projection_1.item_revision") == [("itm_1",)]


async def test_a_change_that_lies_about_its_epoch_holds_progress_only(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """An epoch that the control plane does not know is a dead letter, and following goes on."""
    dsn = product_database["superuser"]
    lie = change(2, item("itm_new", epoch=resolver.epoch + 1))
    resolver.changes = [change(1, item("itm_1")), lie, change(3, item("itm_2"))]
    async with following(database, resolver):
        await until(lambda: looking.outcomes(dsn).get(3) == "applied")
        await until(lambda: resolver.asked_epoch)
    assert (looking.progress(dsn), looking.dead_letters(dsn)) == (1, [(2, "EPOCH_UNKNOWN")])


async def test_a_credential_of_another_tenant_is_refused(
    database: Database, resolver: Resolver
) -> None:
    """The stream that the credential is bound to must be the one that is projected."""
    resolver.tenant = "ten_synth_b"
    assert (await _stops(database, resolver)).code is Code.TENANT_SCOPE_DENIED


async def test_two_followers_of_one_consumer_do_no_harm(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """The progress row makes them take turns, and the inbox makes them harmless (T5)."""
    dsn = product_database["superuser"]
    resolver.changes = story()
    async with following(database, resolver), following(database, resolver):
        await _reached(dsn, 12)
    looking.check_invariants(dsn)
