"""`ChangeService` over real gRPC (if_accepted_change, AW-03)."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from prw.changes.v1 import change_pb2
from prw.changes.v1 import change_service_pb2 as pb
from prw.errors import Code
from prw.grpc_errors import from_rpc_error
from prw_base.server.rpc import RpcSettings
from prw_resolver.stream.model import Change, Page, Stream
from prw_resolver.stream.service import Feed
from prw_resolver.stream.signal import Signal
from tests.faults.retaining import Trusted
from tests.resolver.calling import REVOKED, Served, refusal, served
from tests.resolver.catalogue import Rooms, rooms
from tests.resolver.writing import CATALOG, TENANT, introduction
from tests.support.waiting import until

ME = "product-main"


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Rooms]:
    """Four changes: twelve positions."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as opened:
        await fill(opened, 4)
        yield opened


@pytest.fixture
async def server(held: Rooms) -> AsyncIterator[Served]:
    """The services of those rooms."""
    async with served(held) as serving:
        yield serving


@pytest.fixture
async def product(server: Served) -> Any:
    """A product service's stub, registered."""
    stub = await server.changes("product")
    await stub.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
    return stub


async def fill(held: Rooms, number: int, start: int = 0) -> None:
    """Commit so many changes of three positions."""
    for name in range(start, start + number):
        await held.committer.commit(introduction(held.vocabulary, str(name)))


def follow(after: int = 0, batch: int = 0, epoch: int = 1) -> pb.StreamChangesRequest:
    """A request to follow."""
    return pb.StreamChangesRequest(
        consumer_id=ME, history_epoch=epoch, after_position=after, batch_size=batch
    )


def page(
    after: int = 0, size: int = 0, epoch: int = 1, consumer: str = ME
) -> pb.ListChangesRequest:
    """A request for a page."""
    return pb.ListChangesRequest(
        consumer_id=consumer, history_epoch=epoch, after_position=after, page_size=size
    )


def report(position: int, consumer: str = ME, epoch: int = 1) -> pb.ReportProgressRequest:
    """A report of progress."""
    return pb.ReportProgressRequest(consumer_id=consumer, history_epoch=epoch, position=position)


def positions(batch: Any) -> list[int]:
    """The positions of a batch or page."""
    return [change.position for change in batch.changes]


async def ending(call: Any) -> Code:
    """Read a stream to its end; the code that it ends with."""
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.RpcError as error:
        return from_rpc_error(error).code
    raise AssertionError("the stream ended without an error")


async def test_a_stream_begins_after_a_position_and_goes_on_with_what_comes(
    held: Rooms, product: Any
) -> None:
    """Batches of consecutive changes, an empty one at the end, then each new change by itself (I5)."""
    call = product.StreamChanges(follow(after=2, batch=4))
    assert [positions(await call.read()) for _ in range(3)] == [
        [3, 4, 5, 6],
        [7, 8, 9, 10],
        [11, 12],
    ]
    empty = await call.read()
    assert (positions(empty), empty.cursor_position) == ([], 12)
    await fill(held, 1, start=9)
    live = await call.read()
    assert positions(live) == [13, 14, 15]
    event = change_pb2.Event.FromString(live.changes[0].event)
    assert event.catalog_item.title == "SSD 9"
    assert live.changes[0].committed_at.seconds > 0
    call.cancel()


async def test_a_lost_wake_up_costs_one_poll(held: Rooms) -> None:
    """Polling is the truth: the reader's process was never told of the commit."""
    async with served(held, Signal()) as serving:
        stub = await serving.changes("product")
        await stub.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
        call = stub.StreamChanges(follow(after=12))
        assert positions(await call.read()) == []
        await fill(held, 1, start=9)
        assert positions(await call.read()) == [13, 14, 15]
        call.cancel()


async def test_a_gap_is_filled_page_by_page(product: Any) -> None:
    """`ListChanges` gives what the stream gives, with the cursor and the floor it was read against."""
    first = await product.ListChanges(page(size=5))
    assert (positions(first), first.cursor_position, first.pruned_through) == (
        [1, 2, 3, 4, 5],
        12,
        0,
    )
    assert positions(await product.ListChanges(page(after=12))) == []
    whole = await product.ListChanges(page())
    call = product.StreamChanges(follow())
    assert (await call.read()).changes == whole.changes
    call.cancel()


async def test_a_reader_beyond_the_cursor_or_below_the_floor_is_told(
    held: Rooms, product: Any, superuser: Any
) -> None:
    """CURSOR_AHEAD: histories have parted. CURSOR_PRUNED: only a rebuild helps; never a silent reset."""
    assert (await refusal(product.ListChanges(page(after=13)))).code is Code.CURSOR_AHEAD
    assert await ending(product.StreamChanges(follow(after=13))) is Code.CURSOR_AHEAD
    superuser.execute("update stream_retention set pruned_through = 5")
    superuser.execute("delete from outbox where position <= 5")
    assert (await refusal(product.ListChanges(page(after=4)))).code is Code.CURSOR_PRUNED
    assert await ending(product.StreamChanges(follow(after=4))) is Code.CURSOR_PRUNED
    assert positions(await product.ListChanges(page(after=5, size=1))) == [6]


async def test_another_epoch_is_fenced_before_all_else(
    product: Any, server: Served, tmp_path: Path
) -> None:
    """An epoch that is not the trusted one: EPOCH_FENCED by every method, also for who never registered in it."""
    for call in (
        product.ListChanges(page(epoch=2)),
        product.ReportProgress(report(1, epoch=2)),
        product.ListChanges(page(epoch=2, consumer="unknown")),
    ):
        assert (await refusal(call)).code is Code.EPOCH_FENCED
    assert await ending(product.StreamChanges(follow(epoch=2))) is Code.EPOCH_FENCED
    open_stream = product.StreamChanges(follow(after=12))
    await open_stream.read()
    file = tmp_path / "epoch.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"history_epoch": 2}), "utf-8")
    assert await ending(open_stream) is Code.EPOCH_FENCED
    answer = await product.GetEpoch(pb.GetEpochRequest())
    assert (answer.stream.history_epoch, answer.cursor_position) == (2, 0)


async def test_only_a_registered_consumer_of_ones_own_is_served(
    product: Any, server: Served
) -> None:
    """NOT_FOUND for one that nobody registered, INSTANCE_SCOPE_DENIED for another client's, in every method."""
    rival, neighbour = await server.changes("rival"), await server.changes("neighbour")
    unknown = page(consumer="unknown")
    assert (await refusal(product.ListChanges(unknown))).code is Code.NOT_FOUND
    assert (await refusal(product.ReportProgress(report(1, "unknown")))).code is Code.NOT_FOUND
    assert (await refusal(product.ListChanges(page(consumer="")))).code is Code.VALIDATION_FAILED
    denied = (
        rival.ListChanges(page()),
        rival.ReportProgress(report(1)),
        rival.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME)),
    )
    for call in denied:
        assert (await refusal(call)).code is Code.INSTANCE_SCOPE_DENIED
    assert await ending(rival.StreamChanges(follow())) is Code.INSTANCE_SCOPE_DENIED
    assert (await refusal(neighbour.ListChanges(page()))).code in (
        Code.NOT_FOUND,
        Code.EPOCH_FENCED,
    )
    for who, code in (("collector", Code.MISSING_SCOPE), ("reviewer", Code.PERMISSION_DENIED)):
        stub = await server.changes(who)
        assert (await refusal(stub.ListChanges(page()))).code is code


async def test_a_tenant_sees_its_own_stream_only(server: Served) -> None:
    """The stream comes from the binding: another tenant's consumer of the same name finds its own, empty one."""
    neighbour = await server.changes("neighbour")
    made = await neighbour.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
    assert made.stream.tenant_id == "ten_synth_b"
    answer = await neighbour.ListChanges(page())
    assert (positions(answer), answer.cursor_position) == ([], 0)


async def test_progress_never_goes_back(product: Any) -> None:
    """Monotone, also under concurrent reports; beyond the cursor it is refused; registering again keeps it."""
    answer = await product.ReportProgress(report(5))
    assert (answer.reported_position, answer.reported_at.seconds > 0) == (5, True)
    assert (await product.ReportProgress(report(3))).reported_position == 5
    await asyncio.gather(*(product.ReportProgress(report(number)) for number in (12, 6, 9, 7)))
    assert (await product.ReportProgress(report(0))).reported_position == 12
    assert (await refusal(product.ReportProgress(report(13)))).code is Code.CURSOR_AHEAD
    again = await product.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
    assert (again.reported_position, again.pruned_through) == (12, 0)


async def test_a_new_consumer_starts_at_the_floor(product: Any, superuser: Any) -> None:
    """It is registered under the retention lock, at what is pruned already."""
    superuser.execute("update stream_retention set pruned_through = 5")
    made = await product.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id="late"))
    assert (made.reported_position, made.pruned_through) == (5, 5)


async def test_a_retired_consumer_is_not_served(product: Any, superuser: Any) -> None:
    """Retiring is an explicit act of an operator; coming back needs one too."""
    superuser.execute("update stream_consumer set status = 'retired'")
    assert (await refusal(product.ListChanges(page()))).code is Code.NOT_FOUND
    again = product.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
    assert (await refusal(again)).code is Code.NOT_FOUND


async def test_reporting_into_a_stream_that_was_never_opened_is_not_found(server: Served) -> None:
    """Nothing is registered there, and no row is made."""
    neighbour = await server.changes("neighbour")
    assert (await refusal(neighbour.ReportProgress(report(0)))).code is Code.NOT_FOUND


async def test_a_reader_that_takes_nothing_is_closed_and_holds_one_page(
    held: Rooms, superuser: Any
) -> None:
    """T14: SLOW_CONSUMER after the write timeout; the server's memory stays bounded, and others go on."""
    superuser.execute(
        "insert into outbox (tenant_id, catalog_id, history_epoch, position, event_id, aggregate_type, aggregate_id,"
        " revision, event, committed_at) select tenant_id, catalog_id, 1, 12 + n, 'evt_' || n, 'catalog_item', 'x', n,"
        " convert_to(repeat('x', 4000), 'UTF8'), clock_timestamp()"
        " from stream_cursor, generate_series(1, 20000) n"
    )
    superuser.execute("update stream_cursor set position = 20012")
    limits = RpcSettings(write_timeout=timedelta(seconds=1))
    async with served(held, settings=limits) as serving:
        stub = await serving.changes("product")
        await stub.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
        tracemalloc.start()
        idle = stub.StreamChanges(follow())
        await until(lambda: serving.server.open_calls == 1)
        await until(lambda: serving.server.open_calls == 0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert await ending(idle) is Code.SLOW_CONSUMER
        assert peak < 40_000_000, "eighty megabytes are there to be read"
        resumed = await stub.ListChanges(page(after=20000))
        assert len(positions(resumed)) == 12


async def test_an_open_stream_is_authorised_again(held: Rooms) -> None:
    """A revoked caller is closed with CREDENTIAL_REVOKED, though nothing is committed meanwhile."""
    limits = RpcSettings(recheck_every=timedelta(milliseconds=50))
    async with served(held, settings=limits) as serving:
        stub = await serving.changes("product")
        await stub.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
        call = stub.StreamChanges(follow())
        await call.read()
        REVOKED.add("product")
        assert await ending(call) is Code.CREDENTIAL_REVOKED


async def test_a_draining_server_ends_its_streams(held: Rooms) -> None:
    """A stream ends between two batches; the consumer follows on elsewhere from its progress."""
    async with served(held) as serving:
        stub = await serving.changes("product")
        await stub.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
        call = stub.StreamChanges(follow())
        assert len(positions(await call.read())) == 12
        serving.server.draining.set()
        while await call.read() is not grpc.aio.EOF:
            pass
        assert await call.code() is grpc.StatusCode.OK


async def test_requests_are_checked(product: Any) -> None:
    """Names, sizes and epochs within the limits of the proto."""
    for call in (
        product.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id="no spaces")),
        product.ListChanges(page(size=1001)),
        product.ListChanges(page(epoch=0)),
    ):
        assert (await refusal(call)).code is Code.VALIDATION_FAILED


async def test_a_change_without_facts_takes_no_position(held: Rooms, product: Any) -> None:
    """A note alone is no event."""
    await held.committer.commit(Change("note", TENANT, CATALOG, "d"))
    assert (await product.ListChanges(page())).cursor_position == 12


async def test_a_commit_while_a_page_is_read_wakes_the_reader(
    held: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the page was read and before the wait: fails where what wakes is taken after reading."""
    waits: list[bool] = []
    listened_of = held.signal.wait

    async def wait(listened: asyncio.Event, seconds: float) -> None:
        waits.append(listened.is_set())
        await listened_of(listened, seconds)

    class Interrupted(Feed):
        async def page(self, stream: Stream, after: int, page_size: int = 0) -> Page:
            page = await super().page(stream, after, page_size)
            if not page.changes and after == 12:
                await fill(held, 1, start=30)
            return page

    monkeypatch.setattr(held.signal, "wait", wait)
    interrupted = replace(held, feed=Interrupted(held.database, Trusted()))
    async with served(interrupted) as serving:
        stub = await serving.changes("product")
        await stub.RegisterConsumer(pb.RegisterConsumerRequest(consumer_id=ME))
        call = stub.StreamChanges(follow(after=12))
        assert positions(await call.read()) == []
        assert positions(await call.read()) == [13, 14, 15]
        call.cancel()
    assert waits[0]
