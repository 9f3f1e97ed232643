"""The calls of ChangeService, with errors as ``PrwError`` and changes as they came."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, timedelta

import grpc

from prw.changes.v1 import change_pb2
from prw.changes.v1 import change_service_pb2 as pb
from prw.changes.v1.change_service_pb2_grpc import ChangeServiceStub
from prw.errors import Code, PrwError
from prw_base.client import NEVER, call, receive
from prw_base.scope import Scope
from prw_product.apply.model import Delivery
from prw_product.follow.model import Page, Registered, Stream

_CALL = timedelta(seconds=5)
_LIST = timedelta(seconds=30)
_MAX_POSITION = 2**63 - 1


class ChangeClient:
    """One consumer's view of ChangeService over one channel."""

    def __init__(self, channel: grpc.aio.Channel, consumer_id: str) -> None:
        self._stub = ChangeServiceStub(channel)
        self._consumer_id = consumer_id

    async def register(self) -> Registered:
        """Register the consumer; registering again changes nothing."""
        request = pb.RegisterConsumerRequest(consumer_id=self._consumer_id)
        answer = await call(self._stub.RegisterConsumer, request, _CALL, NEVER)
        return Registered(_stream(answer.stream), answer.reported_position, answer.pruned_through)

    async def read_epoch(self) -> Stream:
        """The stream with its trusted epoch, from the control plane."""
        answer = await call(self._stub.GetEpoch, pb.GetEpochRequest(), _CALL, NEVER)
        return _stream(answer.stream)

    async def report(self, history_epoch: int, position: int) -> int:
        """Report durable progress; returns what is on record."""
        request = pb.ReportProgressRequest(
            consumer_id=self._consumer_id, history_epoch=history_epoch, position=position
        )
        return (await call(self._stub.ReportProgress, request, _CALL, NEVER)).reported_position

    async def list_changes(self, history_epoch: int, after: int, size: int) -> Page:
        """One page after a position, to fill a gap."""
        request = pb.ListChangesRequest(
            consumer_id=self._consumer_id,
            history_epoch=history_epoch,
            after_position=after,
            page_size=size,
        )
        answer = await call(self._stub.ListChanges, request, _LIST, NEVER)
        return read_page(answer)

    async def stream(self, history_epoch: int, after: int, size: int) -> AsyncGenerator[Page, None]:
        """Every change after a position, for as long as the server serves.

        What is not read yet stays with the server: HTTP/2 flow control is the buffer's bound.
        """
        request = pb.StreamChangesRequest(
            consumer_id=self._consumer_id,
            history_epoch=history_epoch,
            after_position=after,
            batch_size=size,
        )
        answers = self._stub.StreamChanges(request)
        try:
            async for answer in receive(aiter(answers)):
                yield read_page(answer)
        finally:
            answers.cancel()
        raise PrwError(Code.UNAVAILABLE, "the server ended the stream")


Connect = Callable[[], AbstractAsyncContextManager["ChangeClient"]]
"""Opens a ``ChangeClient`` as an asynchronous context."""


def connector(open_channel: Callable[[], grpc.aio.Channel], consumer_id: str) -> Connect:
    """What a follower opens for each session: a channel of its own, closed at its end."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[ChangeClient]:
        async with open_channel() as channel:
            yield ChangeClient(channel, consumer_id)

    return connect


def _stream(stream: change_pb2.Stream) -> Stream:
    return Stream(Scope(stream.tenant_id, stream.catalog_id), stream.history_epoch)


def read_page(answer: pb.StreamChangesResponse | pb.ListChangesResponse) -> Page:
    """A message's changes as they came, with the cursor at that moment."""
    return Page(tuple(_delivery(change) for change in answer.changes), answer.cursor_position)


def _delivery(change: change_pb2.Change) -> Delivery:
    if not 1 <= change.position <= _MAX_POSITION:
        raise PrwError(Code.INTERNAL, "the server sent a change without a position")
    try:
        committed_at = change.committed_at.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        message = f"the server sent position {change.position} without a time"
        raise PrwError(Code.INTERNAL, message) from error
    return Delivery(change.position, committed_at, change.event)
