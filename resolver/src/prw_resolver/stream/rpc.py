"""`ChangeService`: what a consumer asks of its stream (if_accepted_change)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from time import monotonic

from prw.changes.v1 import change_pb2, change_service_pb2, change_service_pb2_grpc
from prw.errors import Code, PrwError
from prw_base.principal import Principal, current
from prw_base.server.rpc import Context
from prw_resolver.stream.model import Page, Stream
from prw_resolver.stream.service import Feed
from prw_resolver.stream.signal import Signal

POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 10.0


class ChangeServicer(change_service_pb2_grpc.ChangeServiceServicer):
    """Translates; the stream always comes from the caller's binding, never from the request."""

    def __init__(self, feed: Feed, signal: Signal, draining: asyncio.Event) -> None:
        """`draining` is set when the server ends; streams then end between two batches."""
        self._feed = feed
        self._signal = signal
        self._draining = draining

    async def StreamChanges(
        self, request: change_service_pb2.StreamChangesRequest, context: Context
    ) -> AsyncIterator[change_service_pb2.StreamChangesResponse]:
        """Send every change after a position, then go on with new ones."""
        principal = current()
        stream = _stream(principal, request.history_epoch)
        await self._feed.require_consumer(stream, request.consumer_id, principal.subject)
        tail = _Tail(self._feed, self._signal, stream, request.after_position, request.batch_size)
        async for page in tail.pages(self._draining):
            yield _batch(page)

    async def ListChanges(
        self, request: change_service_pb2.ListChangesRequest, context: Context
    ) -> change_service_pb2.ListChangesResponse:
        """Read one page: for a consumer that fills a gap, or for a rebuild that holds a lease."""
        principal = current()
        stream = _stream(principal, request.history_epoch)
        await self._require_reader(stream, principal, request.consumer_id, request.lease_id)
        page = await self._feed.page(stream, request.after_position, request.page_size)
        return change_service_pb2.ListChangesResponse(
            changes=_changes(page),
            cursor_position=page.cursor_position,
            pruned_through=page.pruned_through,
        )

    async def _require_reader(
        self, stream: Stream, principal: Principal, consumer_id: str, lease_id: str
    ) -> None:
        """A consumer reads by the one scope, a lease by the other; exactly one of them is named."""
        if bool(consumer_id) == bool(lease_id):
            raise PrwError(
                Code.VALIDATION_FAILED,
                "name the registered consumer, or the lease of a rebuild",
                field="consumer_id",
            )
        _require_scope(principal, "changes:read" if consumer_id else "exports:read")
        if consumer_id:
            await self._feed.require_consumer(stream, consumer_id, principal.subject)
        else:
            await self._feed.require_lease(stream, lease_id, principal.subject)

    async def GetEpoch(
        self, request: change_service_pb2.GetEpochRequest, context: Context
    ) -> change_service_pb2.GetEpochResponse:
        """Read the trusted epoch."""
        principal = current()
        stream = await self._feed.stream(principal.tenant_id, principal.catalog_id)
        cursor = await self._feed.cursor(stream)
        return change_service_pb2.GetEpochResponse(stream=_named(stream), cursor_position=cursor)

    async def RegisterConsumer(
        self, request: change_service_pb2.RegisterConsumerRequest, context: Context
    ) -> change_service_pb2.RegisterConsumerResponse:
        """Register a consumer of the caller's stream."""
        principal = current()
        registration = await self._feed.register(
            principal.tenant_id, principal.catalog_id, request.consumer_id, principal.subject
        )
        return change_service_pb2.RegisterConsumerResponse(
            stream=_named(registration.stream),
            reported_position=registration.reported_position,
            pruned_through=registration.pruned_through,
        )

    async def ReportProgress(
        self, request: change_service_pb2.ReportProgressRequest, context: Context
    ) -> change_service_pb2.ReportProgressResponse:
        """Keep a consumer's durable progress."""
        principal = current()
        stream = _stream(principal, request.history_epoch)
        position, at = await self._feed.report(
            stream, request.consumer_id, principal.subject, request.position
        )
        response = change_service_pb2.ReportProgressResponse(reported_position=position)
        response.reported_at.FromDatetime(at)
        return response


class _Tail:
    """Pages without an end: full ones at once, an empty one when the end is reached and as a heartbeat."""

    def __init__(
        self, feed: Feed, signal: Signal, stream: Stream, after: int, page_size: int
    ) -> None:
        self._feed = feed
        self._signal = signal
        self._stream = stream
        self._after = after
        self._page_size = page_size

    async def pages(self, until: asyncio.Event) -> AsyncIterator[Page]:
        """Yield each page once its predecessor was taken, so that a slow reader holds one page and no more."""
        told = -HEARTBEAT_SECONDS
        while not until.is_set():
            listened = self._signal.listen(self._stream)
            page = await self._feed.page(self._stream, self._after, self._page_size)
            if page.changes:
                self._after = page.changes[-1].position
                told = -HEARTBEAT_SECONDS
                yield page
                continue
            if monotonic() - told > HEARTBEAT_SECONDS:
                told = monotonic()
                yield page
            await self._signal.wait(listened, POLL_SECONDS)


def _require_scope(principal: Principal, scope: str) -> None:
    if scope not in principal.scopes:
        raise PrwError(Code.MISSING_SCOPE, f"this needs the scope {scope}")


def _stream(principal: Principal, history_epoch: int) -> Stream:
    return Stream(principal.tenant_id, principal.catalog_id, history_epoch)


def _named(stream: Stream) -> change_pb2.Stream:
    return change_pb2.Stream(
        tenant_id=stream.tenant_id, catalog_id=stream.catalog_id, history_epoch=stream.history_epoch
    )


def _batch(page: Page) -> change_service_pb2.StreamChangesResponse:
    return change_service_pb2.StreamChangesResponse(
        changes=_changes(page),
        cursor_position=page.cursor_position,
        pruned_through=page.pruned_through,
    )


def _changes(page: Page) -> list[change_pb2.Change]:
    return [_change(stored.position, stored.committed_at, stored.event) for stored in page.changes]


def _change(position: int, committed_at: datetime, event: bytes) -> change_pb2.Change:
    change = change_pb2.Change(position=position, event=event)
    change.committed_at.FromDatetime(committed_at)
    return change
