"""Consumers that are dead, paused, retired and back, and leases that race the pruner (T9, T10, I4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
import structlog
from psycopg import errors

from prw.changes.v1 import change_service_pb2 as pb
from prw.errors import Code, PrwError
from prw_resolver.stream.retained import ConsumerAct
from tests.faults.retaining import ME, STREAM, Retaining, retaining
from tests.resolver.calling import refusal, served
from tests.resolver.writing import app
from tests.support.waiting import until

BRIEF = timedelta(milliseconds=300)
STRANGER = "product-2"


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Retaining]:
    """Twelve positions, published."""
    async with retaining(resolver_database, tmp_path) as made:
        yield made


def stop() -> asyncio.Event:
    """An event that nobody sets."""
    return asyncio.Event()


async def _over(held: Retaining) -> None:
    """Wait until the database's clock says that every lease is over."""
    over = "select bool_and(expires_at < clock_timestamp()) from resolver.stream_lease"
    await until(lambda: held.one(over))


async def test_t9_a_dead_consumer_holds_all_and_is_named_aloud(held: Retaining) -> None:
    """It is never removed silently; what it holds is told with who it is. Fails where pruning leaves consumers out."""
    await held.register("dead")
    await held.register("alive")
    await held.rooms.feed.report(STREAM, "alive", ME, 12)
    with structlog.testing.capture_logs() as logs:
        assert await held.pruner.round(stop()) == 0
    (alarm,) = [line for line in logs if line["event"] == "retention.blocked"]
    assert (alarm["holder"], alarm["position"], alarm["positions"]) == ("dead", 0, 12)
    assert alarm["over"] == ("positions",)
    assert alarm["bytes"] > 12 * 50
    assert held.pruned_through == 0


async def test_t9_pruning_goes_through_the_least_progress_that_was_reported(
    held: Retaining,
) -> None:
    """I4; what is delivered and not reported stays, and the rest reads on without a hole."""
    await held.register("one")
    await held.register("two")
    await held.rooms.feed.report(STREAM, "one", ME, 7)
    await held.rooms.feed.report(STREAM, "two", ME, 5)
    assert await held.pruner.round(stop()) == 5
    page = await held.rooms.feed.page(STREAM, 5)
    assert [change.position for change in page.changes] == list(range(6, 13))
    with pytest.raises(PrwError) as refused:
        await held.rooms.feed.page(STREAM, 4)
    assert refused.value.code is Code.CURSOR_PRUNED


async def test_t9_a_paused_consumer_holds_and_returns_by_reporting(held: Retaining) -> None:
    """Pausing says that it is away and gives nothing up; both acts are kept with who and why."""
    await held.register()
    await held.retention.move_consumer(
        STREAM, "product", ConsumerAct.PAUSE, "os:ann", "moves house"
    )
    assert await held.pruner.round(stop()) == 0
    await held.rooms.feed.report(STREAM, "product", ME, 6)
    (consumer,) = await held.retention.consumers(STREAM)
    assert (consumer.status, consumer.reported_position) == ("live", 6)
    assert await held.pruner.round(stop()) == 6
    acts = [(e.act, e.actor, e.reason) for e in await held.retention.events(STREAM)]
    assert acts == [
        ("returned", ME, ""),
        ("paused", "os:ann", "moves house"),
        ("registered", ME, ""),
    ]


async def test_t9_a_retired_consumer_holds_nothing_and_returns_below_the_floor(
    held: Retaining,
) -> None:
    """It is refused, also where it registers again; resumed it is told what was pruned, and rebuilds."""
    await held.register()
    await held.rooms.feed.report(STREAM, "product", ME, 2)
    await held.retention.move_consumer(STREAM, "product", ConsumerAct.RETIRE, "os:ann", "gone")
    assert await held.pruner.round(stop()) == 12
    for call in (
        held.rooms.feed.report(STREAM, "product", ME, 3),
        held.rooms.feed.require_consumer(STREAM, "product", ME),
        held.register(),
    ):
        with pytest.raises(PrwError, match="retired"):
            await call
    await held.retention.move_consumer(STREAM, "product", ConsumerAct.RESUME, "os:ann", "back")
    await held.fill(1, start=20)
    (consumer,) = await held.retention.consumers(STREAM)
    assert (consumer.status, consumer.reported_position) == ("live", 12)
    assert await held.pruner.round(stop()) == 0
    with pytest.raises(PrwError) as refused:
        await held.rooms.feed.page(STREAM, 2)
    assert refused.value.code is Code.CURSOR_PRUNED


async def test_t9_an_act_on_nobody_or_by_another_is_refused(held: Retaining) -> None:
    """NOT_FOUND, INSTANCE_SCOPE_DENIED; nothing is noted of either."""
    await held.register()
    with pytest.raises(PrwError) as refused:
        await held.retention.move_consumer(STREAM, "nobody", ConsumerAct.RETIRE, "os:ann", "x")
    assert refused.value.code is Code.NOT_FOUND
    with pytest.raises(PrwError) as refused:
        await held.rooms.feed.report(STREAM, "product", STRANGER, 3)
    assert refused.value.code is Code.INSTANCE_SCOPE_DENIED
    assert len(await held.retention.events(STREAM)) == 1


async def test_t9_only_what_is_published_and_old_enough_goes(held: Retaining) -> None:
    """A contiguous prefix: what follows an unpublished or young change stays."""
    held.one("update resolver.outbox set published_at = null where position = 5 returning 1")
    held.one(
        "update resolver.outbox set committed_at = clock_timestamp() + interval '1 h' where position = 3"
        " returning 1"
    )
    assert await held.pruner.round(stop()) == 2
    held.one(
        "update resolver.outbox set committed_at = clock_timestamp() where position = 3 returning 1"
    )
    assert await held.pruner.round(stop()) == 2
    await held.relay.mark()
    assert await held.pruner.round(stop()) == 8


async def test_t10_a_lease_holds_from_its_pin_and_reads_until_it_is_over(held: Retaining) -> None:
    """Its pin moves forward only. Fails where the pruner ignores leases."""
    assert await held.pruner.round(stop()) == 12
    await held.fill(2, start=10)
    lease = await held.retention.grant(STREAM, ME)
    assert lease.pin == 12
    assert await held.pruner.round(stop()) == 0
    moved = await held.retention.renew(STREAM, lease.lease_id, ME, pin=15)
    assert (moved.pin, moved.expires_at > lease.expires_at) == (15, True)
    assert (await held.retention.renew(STREAM, lease.lease_id, ME, pin=13)).pin == 15
    assert await held.pruner.round(stop()) == 3
    await held.retention.release(STREAM, lease.lease_id, ME)
    with pytest.raises(PrwError) as refused:
        await held.rooms.feed.require_lease(STREAM, lease.lease_id, ME)
    assert refused.value.code is Code.LEASE_EXPIRED
    assert await held.pruner.round(stop()) == 3


async def test_t10_a_lease_that_ran_out_never_comes_back(held: Retaining) -> None:
    """Neither by renewal nor by its pin. Fails where a renewal does not look at the time."""
    retention = held.short(BRIEF)
    lease = await retention.grant(STREAM, ME)
    await _over(held)
    for call in (
        retention.renew(STREAM, lease.lease_id, ME),
        held.retention.renew(STREAM, lease.lease_id, ME, pin=3),
        held.rooms.feed.require_lease(STREAM, lease.lease_id, ME),
    ):
        with pytest.raises(PrwError) as refused:
            await call
        assert refused.value.code is Code.LEASE_EXPIRED
    assert await held.pruner.round(stop()) == 12


async def test_t10_a_renewal_that_waited_past_the_end_is_refused(held: Retaining) -> None:
    """Time is read once the lock is held: fails with now(), which is when its transaction began."""
    lease = await held.short(BRIEF).grant(STREAM, ME)
    with held.locked():
        (renewal,) = await held.queue(
            lambda: held.retention.renew(STREAM, lease.lease_id, ME),
        )
        await _over(held)
    with pytest.raises(PrwError) as refused:
        await renewal
    assert refused.value.code is Code.LEASE_EXPIRED


async def test_t10_a_pruner_that_waited_sees_the_time_that_it_is(held: Retaining) -> None:
    """A lease that ended meanwhile holds nothing: fails with now() in the pruner."""
    await held.short(BRIEF).grant(STREAM, ME)
    with held.locked():
        (pruning,) = await held.queue(lambda: held.pruner.prune(STREAM))
        await _over(held)
    assert await pruning == 12


@pytest.mark.parametrize("pruner_first", [True, False])
async def test_t10_a_lease_and_a_pruning_take_turns(held: Retaining, pruner_first: bool) -> None:
    """Whoever is first, the lease's pin is at the floor and nothing after it is gone. Fails without the lock."""
    contenders = [lambda: held.pruner.prune(STREAM), lambda: held.retention.grant(STREAM, ME)]
    with held.locked():
        started = await held.queue(*(contenders if pruner_first else reversed(contenders)))
    first, second = await asyncio.gather(*started)
    gone, lease = (first, second) if pruner_first else (second, first)
    assert (gone, lease.pin) == ((12, 12) if pruner_first else (0, 0))
    assert held.pruned_through == lease.pin


@pytest.mark.parametrize("pruner_first", [True, False])
async def test_t10_a_registration_and_a_pruning_take_turns(
    held: Retaining, pruner_first: bool
) -> None:
    """A consumer starts at a floor that holds from then on. Fails where registering does not take the lock."""
    contenders = [lambda: held.pruner.prune(STREAM), held.register]
    with held.locked():
        started = await held.queue(*(contenders if pruner_first else reversed(contenders)))
    await asyncio.gather(*started)
    (consumer,) = await held.retention.consumers(STREAM)
    assert consumer.reported_position == held.pruned_through == (12 if pruner_first else 0)


async def test_t10_leases_consumers_and_pruning_at_once_keep_the_bound(held: Retaining) -> None:
    """I4: at every pruning its end is at most every pin and progress; checked inside of its own transaction."""
    with psycopg.connect(held.dsns["superuser"]) as conn:
        conn.execute(_WATCH)
    await held.register()

    async def leaseholder() -> None:
        for pin in range(0, 12, 3):
            lease = await held.retention.grant(STREAM, ME)
            await held.retention.renew(STREAM, lease.lease_id, ME, pin=pin)
            await held.retention.release(STREAM, lease.lease_id, ME)

    async def consumer() -> None:
        for position in range(13):
            await held.rooms.feed.report(STREAM, "product", ME, position)

    async def pruner() -> None:
        while held.pruned_through < 12:
            await held.pruner.prune(STREAM)

    await asyncio.gather(pruner(), consumer(), leaseholder(), leaseholder())
    assert held.one("select count(*) from resolver.outbox") == 0


_WATCH = """
create function resolver.watch_i4() returns trigger language plpgsql security definer as $$
begin
    if new.pruned_through > (select min(reported_position) from resolver.stream_consumer)
       or new.pruned_through > (select min(pin) from resolver.stream_lease
                                 where ended_at is null and expires_at > clock_timestamp()) then
        raise exception 'I4';
    end if;
    return new;
end $$;
create trigger watch_i4 before update on resolver.stream_retention
    for each row execute function resolver.watch_i4();
"""


async def test_t10_another_epoch_is_neither_pruned_nor_leased(held: Retaining) -> None:
    """A fenced stream is left as it is."""
    held.one("update resolver.stream_cursor set status = 'fenced' returning 1")
    for call in (held.pruner.prune(STREAM), held.retention.grant(STREAM, ME)):
        with pytest.raises(PrwError) as refused:
            await call
        assert refused.value.code is Code.EPOCH_FENCED
    assert await held.pruner.round(stop()) == 0
    assert held.one("select count(*) from resolver.outbox") == 12


async def test_the_pages_of_a_lease_are_read_by_its_holder_only(held: Retaining) -> None:
    """ListChanges takes a consumer or a lease, not both and not neither; another client's lease is not found."""
    await held.register()
    async with served(held.rooms) as serving:
        mine, other = await serving.changes("rebuilder"), await serving.changes("rival rebuilder")
        lease = await held.retention.grant(STREAM, ME)
        asked = pb.ListChangesRequest(history_epoch=1, after_position=3, lease_id=lease.lease_id)
        page = await mine.ListChanges(asked)
        assert [change.position for change in page.changes] == list(range(4, 13))
        assert (await refusal(other.ListChanges(asked))).code is Code.NOT_FOUND
        without = await serving.changes("product")
        assert (await refusal(without.ListChanges(asked))).code is Code.MISSING_SCOPE
        for wrong in (
            pb.ListChangesRequest(history_epoch=1),
            pb.ListChangesRequest(history_epoch=1, lease_id=lease.lease_id, consumer_id="product"),
        ):
            assert (await refusal(mine.ListChanges(wrong))).field == "consumer_id"


FORBIDDEN: tuple[LiteralString, ...] = (
    "delete from resolver.outbox",
    "select from resolver.outbox",
    "update resolver.stream_retention set pruned_through = 12",
    "select from resolver.stream_lease",
    "select resolver.stream_grant_lease('ten_synth_a', 'cat_primary', 1, 'l', 'p', '1 h')",
    "select resolver.stream_move_consumer('ten_synth_a', 'cat_primary', 1, 'product', 'retired', 'me', '')",
    "select resolver.stream_commit('ten_synth_a', 'cat_primary', 1, '[]')",
)


def test_the_pruner_s_role_may_prune_and_nothing_else(
    held: Retaining, resolver_database: dict[str, str]
) -> None:
    """And the server's role may not prune, nor write what holds retention."""
    with app(resolver_database, role="resolver_pruner") as conn:
        for statement in FORBIDDEN:
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(statement)
    with app(resolver_database) as conn:
        for statement in (
            "select resolver.stream_prune('ten_synth_a', 'cat_primary', 1, '0 s', 10)",
            "select resolver.streams_of_epoch(1)",
            "update resolver.stream_consumer set reported_position = 12",
            "update resolver.stream_lease set expires_at = 'infinity'",
            "insert into resolver.stream_retention values ('ten_synth_a', 'x', 1, 0)",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(statement.encode())


def test_pruning_stays_within_the_transaction_s_tenant(
    held: Retaining, resolver_database: dict[str, str]
) -> None:
    """The function has its owner's rights and security binds the owner: another tenant's stream is not there."""
    with (
        app(resolver_database, "ten_synth_b", "resolver_pruner") as conn,
        pytest.raises(psycopg.Error, match="EPOCH_FENCED"),
    ):
        conn.execute("select resolver.stream_prune('ten_synth_a', 'cat_primary', 1, '0 s', 10)")
    assert held.pruned_through == 0


async def test_the_pruner_survives_a_restart_of_the_database(held: Retaining) -> None:
    """Its connections are cut as a restart cuts them; it goes on by itself in a later round."""
    ending = asyncio.Event()
    running = asyncio.create_task(held.pruner.run(ending))
    await until(lambda: held.pruned_through == 12)
    held.one(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'resolver_pruner'"
        " and datname = current_database()"
    )
    await held.fill(1, start=30)
    await until(lambda: held.pruned_through == 15)
    ending.set()
    await running
