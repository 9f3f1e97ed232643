"""The calls of ExportService, and of ChangeService under a lease, with errors as ``PrwError``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta

import grpc

from prw.changes.v1 import change_pb2
from prw.changes.v1 import change_service_pb2 as changes
from prw.changes.v1 import export_service_pb2 as pb
from prw.changes.v1.change_service_pb2_grpc import ChangeServiceStub
from prw.changes.v1.export_service_pb2_grpc import ExportServiceStub
from prw_base.client import NEVER, Retry, call, receive
from prw_base.scope import Scope
from prw_product.follow.client import ChangeClient, read_page
from prw_product.follow.model import Page
from prw_product.rebuild.model import ExportObject, ExportStatus, Manifest, StateDigest

_CALL = timedelta(seconds=5)
_LONG = timedelta(seconds=30)
_DIGEST = timedelta(minutes=5)
RETRY = Retry()


class ExportClient:
    """A rebuild's view of the resolver over one channel."""

    def __init__(self, channel: grpc.aio.Channel, consumer_id: str, retry: Retry = RETRY) -> None:
        self._exports = ExportServiceStub(channel)
        self._changes = ChangeServiceStub(channel)
        self._retry = retry
        self.consumer = ChangeClient(channel, consumer_id)
        """As the consumer that will follow the generation that is built."""

    async def create(self, client_token: str) -> Manifest:
        """Begin an export; the same token is the same export."""
        request = pb.CreateSnapshotRequest(client_token=client_token)
        answer = await call(self._exports.CreateSnapshot, request, _LONG, self._retry)
        return _manifest(answer.manifest)

    async def read_manifest(self, export_id: str) -> Manifest:
        """How an export stands."""
        request = pb.GetSnapshotRequest(export_id=export_id)
        answer = await call(self._exports.GetSnapshot, request, _CALL, self._retry)
        return _manifest(answer.manifest)

    async def read(self, export_id: str, name: str, offset: int) -> AsyncIterator[bytes]:
        """The stored bytes of an object from an offset, until the end or a broken connection."""
        request = pb.ReadObjectRequest(export_id=export_id, name=name, offset=offset)
        answers = self._exports.ReadObject(request)
        try:
            async for answer in receive(aiter(answers)):
                yield answer.chunk
        finally:
            answers.cancel()

    async def renew(self, history_epoch: int, lease_id: str, pin: int) -> None:
        """Let the lease last on, and give free what is at or below the pin."""
        request = pb.RenewLeaseRequest(history_epoch=history_epoch, lease_id=lease_id, pin=pin)
        await call(self._exports.RenewLease, request, _CALL, NEVER)

    async def release(self, history_epoch: int, lease_id: str) -> None:
        """End the lease."""
        request = pb.ReleaseLeaseRequest(history_epoch=history_epoch, lease_id=lease_id)
        await call(self._exports.ReleaseLease, request, _CALL, NEVER)

    async def list_changes(self, history_epoch: int, lease_id: str, after: int, size: int) -> Page:
        """One page of what the lease holds."""
        request = changes.ListChangesRequest(
            lease_id=lease_id, history_epoch=history_epoch, after_position=after, page_size=size
        )
        answer = await call(self._changes.ListChanges, request, _LONG, self._retry)
        return read_page(answer)

    async def read_digests(self, history_epoch: int, position: int) -> dict[str, StateDigest]:
        """The digests of the accepted state as of a position, by type of aggregate."""
        request = pb.GetDigestRequest(history_epoch=history_epoch, position=position)
        answer = await call(self._exports.GetDigest, request, _DIGEST, NEVER)
        return {_type(one): StateDigest(one.aggregates, one.digest) for one in answer.digests}


Connect = Callable[[], AbstractAsyncContextManager[ExportClient]]
"""Opens an ``ExportClient`` as an asynchronous context."""


def connector(
    open_channel: Callable[[], grpc.aio.Channel], consumer_id: str, retry: Retry = RETRY
) -> Connect:
    """What a rebuild opens: a channel of its own, closed at its end."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[ExportClient]:
        async with open_channel() as channel:
            yield ExportClient(channel, consumer_id, retry)

    return connect


def _type(told: pb.StateDigest) -> str:
    return change_pb2.AggregateType.Name(told.type).removeprefix("AGGREGATE_TYPE_").lower()


def _manifest(told: pb.Manifest) -> Manifest:
    status = pb.ExportStatus.Name(told.status).removeprefix("EXPORT_STATUS_").lower()
    left = told.expires_at.ToDatetime(tzinfo=UTC) - datetime.now(UTC)
    return Manifest(
        told.export_id,
        Scope(told.stream.tenant_id, told.stream.catalog_id),
        told.stream.history_epoch,
        told.position,
        told.schema_version,
        ExportStatus(status),
        told.lease_id,
        left.total_seconds(),
        tuple(_object(one) for one in told.objects),
        told.digest,
        told.code,
        told.expected_aggregates,
    )


def _object(told: pb.ExportObject) -> ExportObject:
    kind = pb.ObjectKind.Name(told.kind).removeprefix("OBJECT_KIND_").lower()
    return ExportObject(told.name, kind, told.rows, told.bytes, told.sha256)
