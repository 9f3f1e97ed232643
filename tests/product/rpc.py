"""A resolver's ChangeService over real gRPC, whose history and faults a test controls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import grpc

from prw.changes.v1 import change_pb2
from prw.changes.v1 import change_service_pb2 as pb
from prw.changes.v1.change_service_pb2_grpc import (
    ChangeServiceServicer,
    add_ChangeServiceServicer_to_server,
)
from prw.errors import Code, PrwError
from prw.grpc_errors import abort
from tests.product.events import CATALOG, EPOCH, TENANT

Context = grpc.aio.ServicerContext[Any, Any]
Deliver = Callable[[list[change_pb2.Change]], list[change_pb2.Change]]


class Resolver(ChangeServiceServicer):
    """Serves ``changes``; ``deliver`` may drop, repeat or reorder what a stream sends."""

    def __init__(self, changes: Sequence[change_pb2.Change] = ()) -> None:
        self.changes = list(changes)
        self.epoch = EPOCH
        self.tenant = TENANT
        self.reports: list[int] = []
        self.streams: list[int] = []
        self.asked_epoch = 0
        self.tokens: list[str] = []
        self.revoked: set[str] = set()
        self.listed: list[int] = []
        self.deliver: Deliver = list
        self.refusals: dict[str, list[PrwError]] = {}
        self.unlisted: set[int] = set()
        self._more = asyncio.Event()
        self._cut = asyncio.Event()
        self._server: grpc.aio.Server | None = None
        self.port = 0

    async def start(self) -> str:
        """Serve on the port of the time before, or on a free one; returns the address."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        add_ChangeServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        self._cut = asyncio.Event()
        await self._server.start()
        return f"127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Go away, cutting streams off."""
        self._cut.set()
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def append(self, *changes: change_pb2.Change) -> None:
        """Commit changes, and wake the streams."""
        self.changes += changes
        self._wake()

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()

    @property
    def cursor(self) -> int:
        """The greatest position."""
        return max((change.position for change in self.changes), default=0)

    @property
    def reported(self) -> int:
        """The greatest report."""
        return max(self.reports, default=0)

    async def _refuse(self, method: str, context: Context) -> None:
        waiting = self.refusals.get(method)
        if waiting:
            await abort(context, waiting.pop(0))

    def _stream(self) -> change_pb2.Stream:
        return change_pb2.Stream(
            tenant_id=self.tenant, catalog_id=CATALOG, history_epoch=self.epoch
        )

    async def RegisterConsumer(
        self, request: pb.RegisterConsumerRequest, context: Context
    ) -> pb.RegisterConsumerResponse:
        metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        self.tokens.append(metadata["authorization"].removeprefix("Bearer "))
        if self.tokens[-1] in self.revoked:
            await abort(context, PrwError(Code.CREDENTIAL_REVOKED, "revoked"))
        await self._refuse("register", context)
        return pb.RegisterConsumerResponse(stream=self._stream(), reported_position=self.reported)

    async def GetEpoch(self, request: pb.GetEpochRequest, context: Context) -> pb.GetEpochResponse:
        self.asked_epoch += 1
        return pb.GetEpochResponse(stream=self._stream(), cursor_position=self.cursor)

    async def ReportProgress(
        self, request: pb.ReportProgressRequest, context: Context
    ) -> pb.ReportProgressResponse:
        await self._refuse("report", context)
        self.reports.append(request.position)
        return pb.ReportProgressResponse(reported_position=self.reported)

    async def ListChanges(
        self, request: pb.ListChangesRequest, context: Context
    ) -> pb.ListChangesResponse:
        await self._refuse("list", context)
        self.listed.append(request.after_position)
        after = [c for c in self._after(request.after_position) if c.position not in self.unlisted]
        return pb.ListChangesResponse(
            changes=after[: request.page_size or 500], cursor_position=self.cursor
        )

    async def StreamChanges(
        self, request: pb.StreamChangesRequest, context: Context
    ) -> AsyncIterator[pb.StreamChangesResponse]:
        await self._refuse("stream", context)
        self.streams.append(request.after_position)
        sent = request.after_position
        while not self._cut.is_set():
            more = self._more
            batch = self._after(sent)[: request.batch_size or 500]
            sent = max((change.position for change in batch), default=sent)
            yield pb.StreamChangesResponse(changes=self.deliver(batch), cursor_position=self.cursor)
            if not batch:
                await _either(more, self._cut)

    def _after(self, position: int) -> list[change_pb2.Change]:
        found = [change for change in self.changes if change.position > position]
        return sorted(found, key=lambda change: change.position)


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    waits = {asyncio.create_task(first.wait()), asyncio.create_task(second.wait())}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
