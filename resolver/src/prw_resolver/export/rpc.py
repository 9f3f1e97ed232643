"""`ExportService`: translate, call one use case, translate back (if_projection_bootstrap)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from prw.changes.v1 import change_pb2
from prw.changes.v1 import export_service_pb2 as pb
from prw.changes.v1 import export_service_pb2_grpc as pb_grpc
from prw_base.principal import current
from prw_base.server.rpc import Context
from prw_resolver.export.model import ExportStatus, StateDigest, StoredObject
from prw_resolver.export.service import Exports, Told

_STATUS: Final = {
    ExportStatus.RUNNING: pb.EXPORT_STATUS_RUNNING,
    ExportStatus.READY: pb.EXPORT_STATUS_READY,
    ExportStatus.FAILED: pb.EXPORT_STATUS_FAILED,
    ExportStatus.EXPIRED: pb.EXPORT_STATUS_FAILED,
}


class ExportServicer(pb_grpc.ExportServiceServicer):
    """Snapshots and leases of the caller's stream."""

    def __init__(self, exports: Exports) -> None:
        self._exports = exports

    async def CreateSnapshot(
        self, request: pb.CreateSnapshotRequest, context: Context
    ) -> pb.CreateSnapshotResponse:
        """Begin an export."""
        told = await self._exports.create(current(), request.client_token)
        return pb.CreateSnapshotResponse(manifest=_manifest(told))

    async def GetSnapshot(
        self, request: pb.GetSnapshotRequest, context: Context
    ) -> pb.GetSnapshotResponse:
        """Tell how an export stands."""
        told = await self._exports.tell(current(), request.export_id)
        return pb.GetSnapshotResponse(manifest=_manifest(told))

    async def ReadObject(
        self, request: pb.ReadObjectRequest, context: Context
    ) -> AsyncIterator[pb.ReadObjectResponse]:
        """Send the stored bytes of an object."""
        chunks = self._exports.read(current(), request.export_id, request.name, request.offset)
        async for chunk in chunks:
            yield pb.ReadObjectResponse(chunk=chunk)

    async def RenewLease(
        self, request: pb.RenewLeaseRequest, context: Context
    ) -> pb.RenewLeaseResponse:
        """Let a lease last on."""
        lease = await self._exports.renew(
            current(), request.history_epoch, request.lease_id, request.pin
        )
        response = pb.RenewLeaseResponse(pin=lease.pin)
        response.expires_at.FromDatetime(lease.expires_at)
        return response

    async def ReleaseLease(
        self, request: pb.ReleaseLeaseRequest, context: Context
    ) -> pb.ReleaseLeaseResponse:
        """End a lease."""
        await self._exports.release(current(), request.history_epoch, request.lease_id)
        return pb.ReleaseLeaseResponse()

    async def GetDigest(
        self, request: pb.GetDigestRequest, context: Context
    ) -> pb.GetDigestResponse:
        """Compute a digest of the accepted state as of a position."""
        found = await self._exports.digest(current(), request.history_epoch, request.position)
        return pb.GetDigestResponse(digests=[_digest(one) for one in found])


def _digest(one: StateDigest) -> pb.StateDigest:
    kind = change_pb2.AggregateType.Value(f"AGGREGATE_TYPE_{one.type.upper()}")
    return pb.StateDigest(type=kind, aggregates=one.aggregates, digest=one.digest)


def _manifest(told: Told) -> pb.Manifest:
    export = told.export
    manifest = pb.Manifest(
        export_id=export.export_id,
        stream=change_pb2.Stream(
            tenant_id=told.scope.tenant_id,
            catalog_id=told.scope.catalog_id,
            history_epoch=export.history_epoch,
        ),
        position=export.position or 0,
        schema_version=export.schema_version,
        status=_STATUS[export.status],
        lease_id=export.lease_id,
        objects=[_object(one) for one in told.objects],
        digest=export.digest,
        code=export.code,
        expected_aggregates=export.expected,
    )
    manifest.expires_at.FromDatetime(export.expires_at)
    return manifest


def _object(stored: StoredObject) -> pb.ExportObject:
    return pb.ExportObject(
        name=stored.name,
        kind=pb.ObjectKind.Value(f"OBJECT_KIND_{stored.kind.upper()}"),
        rows=stored.rows,
        bytes=stored.bytes,
        sha256=stored.sha256,
    )
