"""A resolver's intake over real gRPC that keeps what it is given in memory, and fails as it is told."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from prw.collector.v1 import artifact_service_pb2 as artifacts
from prw.collector.v1 import capture_service_pb2 as captures
from prw.collector.v1 import checkpoint_service_pb2 as checkpointing
from prw.collector.v1 import collector_service_pb2 as collectors
from prw.collector.v1.artifact_service_pb2_grpc import (
    ArtifactServiceServicer,
    add_ArtifactServiceServicer_to_server,
)
from prw.collector.v1.capture_service_pb2_grpc import (
    CaptureServiceServicer,
    add_CaptureServiceServicer_to_server,
)
from prw.collector.v1.checkpoint_service_pb2_grpc import (
    CheckpointServiceServicer,
    add_CheckpointServiceServicer_to_server,
)
from prw.collector.v1.collector_service_pb2_grpc import (
    CollectorServiceServicer,
    add_CollectorServiceServicer_to_server,
)
from prw.collector.v1.evidence_pb2 import RECEIPT_STATUS_RESOLVED, Capture, Receipt, ReceiptStatus
from prw.errors import Code, PrwError
from prw.grpc_errors import abort

TOKEN = "a-token"


@dataclass
class Intake:
    """What the resolver was given, how often it was asked, and the errors that it answers next.

    `late` says how many calls of a method do their work and never answer.
    """

    address: str = ""
    tenant: str = "ten_synth_a"
    granted: frozenset[str] = frozenset({"src_list"})
    registered: list[collectors.RegisterRequest] = field(default_factory=list)
    declared: dict[str, artifacts.DeclareUploadRequest] = field(default_factory=dict)
    declared_for: set[str] = field(default_factory=set)
    stored: dict[str, bytes] = field(default_factory=dict)
    captures: dict[tuple[str, str, str], Capture] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    errors: dict[str, list[PrwError | None]] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    chunks: list[int] = field(default_factory=list)
    streams: bool = True
    receipt_status: ReceiptStatus.ValueType = RECEIPT_STATUS_RESOLVED
    unreadable: set[str] = field(default_factory=set)
    heartbeats: list[collectors.HeartbeatRequest] = field(default_factory=list)
    checkpoints: dict[tuple[str, str, str], checkpointing.Checkpoint] = field(default_factory=dict)
    sequences: list[tuple[str, int]] = field(default_factory=list)

    def fail(self, method: str, *errors: PrwError | None) -> None:
        """Answer the next calls of a method with these; None lets one through."""
        self.errors[method] = list(errors)

    async def enter(self, method: str, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Count a call, check its credential, and fail it if told to."""
        self.calls[method] += 1
        metadata = dict(context.invocation_metadata() or ())
        if metadata.get("authorization") != f"Bearer {TOKEN}":
            await abort(context, PrwError(Code.INVALID_TOKEN, "no such token"))
        queue = self.errors.get(method)
        error = queue.pop(0) if queue else None
        if error is not None:
            await abort(context, error)

    async def receipts(
        self, receipt_ids: Iterable[str], context: grpc.aio.ServicerContext[Any, Any]
    ) -> list[Receipt]:
        """The receipts asked for; one that may not be read fails them all, as at the resolver."""
        asked = list(receipt_ids)
        if self.unreadable.intersection(asked):
            await abort(context, PrwError(Code.NOT_FOUND, "no such receipt"))
        return [Receipt(receipt_id=one, status=self.receipt_status) for one in asked]


class _Collectors(CollectorServiceServicer):
    def __init__(self, intake: Intake) -> None:
        self.intake = intake

    async def Register(self, request: Any, context: Any) -> collectors.RegisterResponse:  # noqa: N802
        await self.intake.enter("Register", context)
        outside = set(request.targets) - self.intake.granted
        if outside:
            await abort(context, PrwError(Code.SOURCE_SCOPE_DENIED, f"{outside} not granted"))
        self.intake.registered.append(request)
        return collectors.RegisterResponse(
            instance_id=request.instance_id,
            tenant_id=self.intake.tenant,
            granted_sources=sorted(self.intake.granted),
        )

    async def Heartbeat(self, request: Any, context: Any) -> collectors.HeartbeatResponse:  # noqa: N802
        await self.intake.enter("Heartbeat", context)
        receipts = await self.intake.receipts(request.receipt_ids, context)
        self.intake.heartbeats.append(request)
        return collectors.HeartbeatResponse(instance_id=request.instance_id, receipts=receipts)


class _Checkpoints(CheckpointServiceServicer):
    def __init__(self, intake: Intake) -> None:
        self.intake = intake

    async def GetCheckpoint(  # noqa: N802
        self, request: Any, context: Any
    ) -> checkpointing.GetCheckpointResponse:
        await self.intake.enter("GetCheckpoint", context)
        found = self.intake.checkpoints.get(_name(request.key))
        checkpoint = found or checkpointing.Checkpoint(key=request.key)
        return checkpointing.GetCheckpointResponse(checkpoint=checkpoint)

    async def AdvanceCheckpoint(  # noqa: N802
        self, request: Any, context: Any
    ) -> checkpointing.AdvanceCheckpointResponse:
        await self.intake.enter("AdvanceCheckpoint", context)
        name = _name(request.key)
        found = self.intake.checkpoints.get(name, checkpointing.Checkpoint())
        if found.revision != request.expected_revision:
            await abort(context, PrwError(Code.CHECKPOINT_CONFLICT, "it has moved on"))
        advanced = checkpointing.Checkpoint(
            key=request.key,
            revision=found.revision + 1,
            state=request.state,
            deferred=request.deferred,
        )
        self.intake.checkpoints[name] = advanced
        if self.intake.late.get("AdvanceCheckpoint", 0) > 0:
            self.intake.late["AdvanceCheckpoint"] -= 1
            # it is persisted, and the answer is lost
            await abort(context, PrwError(Code.UNAVAILABLE, "gone"))
        return checkpointing.AdvanceCheckpointResponse(checkpoint=advanced)


def _name(key: checkpointing.CheckpointKey) -> tuple[str, str, str]:
    return key.source_id, key.adapter, key.partition


class _Artifacts(ArtifactServiceServicer):
    def __init__(self, intake: Intake) -> None:
        self.intake = intake

    async def StoreArtifacts(self, requests: Any, context: Any) -> Any:  # noqa: N802
        if not self.intake.streams:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such method")
        await self.intake.enter("StoreArtifacts", context)
        declared: dict[int, artifacts.ArtifactDeclaration] = {}
        body = bytearray()
        async for request in requests:
            if request.HasField("declaration"):
                one = request.declaration
                self.intake.sequences.append(("declared", one.sequence))
                declared[one.sequence] = one
                yield await self._declared(one, context)
                continue
            chunk = request.chunk
            self.intake.chunks.append(len(chunk.data))
            body += chunk.data
            if chunk.last:
                yield await self._sent(declared[chunk.sequence], bytes(body), context)
                body.clear()

    async def _declared(self, one: Any, context: Any) -> artifacts.StoreArtifactsResponse:
        refused = await self._refused("Declaration", one.sequence, context)
        if refused is not None:
            return refused
        self.intake.declared[one.sha256] = one
        self.intake.declared_for.add(one.source_id)
        stored = one.sha256 in self.intake.stored
        status = artifacts.ARTIFACT_STATUS_STORED if stored else artifacts.ARTIFACT_STATUS_PENDING
        return artifacts.StoreArtifactsResponse(sequence=one.sequence, status=status)

    async def _sent(self, one: Any, body: bytes, context: Any) -> artifacts.StoreArtifactsResponse:
        self.intake.sequences.append(("sent", one.sequence))
        if self.intake.late.get("Bytes", 0) > 0:
            self.intake.late["Bytes"] -= 1
            # until the caller breaks it off
            await asyncio.Event().wait()
        refused = await self._refused("Bytes", one.sequence, context)
        if refused is not None:
            return refused
        assert hashlib.sha256(body).hexdigest() == one.sha256
        self.intake.stored[one.sha256] = body
        status = artifacts.ARTIFACT_STATUS_STORED
        return artifacts.StoreArtifactsResponse(sequence=one.sequence, status=status)

    async def _refused(
        self, step: str, sequence: int, context: Any
    ) -> artifacts.StoreArtifactsResponse | None:
        """What a test wants refused; "break" as its message breaks the stream off."""
        self.intake.calls[step] += 1
        queue = self.intake.errors.get(step)
        error = queue.pop(0) if queue else None
        if error is None:
            return None
        if error.message == "break":
            await abort(context, error)
        said = artifacts.ArtifactRefusal(
            code=error.code.value,
            message=error.message,
            retryable=error.retryable,
            details=error.details,
        )
        return artifacts.StoreArtifactsResponse(
            sequence=sequence, status=artifacts.ARTIFACT_STATUS_REFUSED, error=said
        )

    async def DeclareUpload(self, request: Any, context: Any) -> artifacts.DeclareUploadResponse:  # noqa: N802
        await self.intake.enter("DeclareUpload", context)
        self.intake.declared[request.sha256] = request
        stored = request.sha256 in self.intake.stored
        status = artifacts.ARTIFACT_STATUS_STORED if stored else artifacts.ARTIFACT_STATUS_PENDING
        return artifacts.DeclareUploadResponse(upload_id=request.sha256, status=status)

    async def PutArtifact(self, requests: Any, context: Any) -> artifacts.PutArtifactResponse:  # noqa: N802
        await self.intake.enter("PutArtifact", context)
        first = await anext(requests)
        body = bytearray()
        async for request in requests:
            self.intake.chunks.append(len(request.chunk))
            body += request.chunk
        sha256 = hashlib.sha256(body).hexdigest()
        if sha256 != first.upload_id:
            await abort(context, PrwError(Code.DIGEST_MISMATCH, "other bytes"))
        self.intake.stored[sha256] = bytes(body)
        return artifacts.PutArtifactResponse(sha256=sha256, status=artifacts.ARTIFACT_STATUS_STORED)


class _Captures(CaptureServiceServicer):
    def __init__(self, intake: Intake) -> None:
        self.intake = intake

    async def SubmitCapture(self, request: Any, context: Any) -> captures.SubmitCaptureResponse:  # noqa: N802
        await self.intake.enter("SubmitCapture", context)
        capture: Capture = request.capture
        if any(part.sha256 not in self.intake.stored for part in capture.parts):
            await abort(context, PrwError(Code.ARTIFACT_NOT_STORED, "bytes are missing"))
        moment = capture.captured_at.ToJsonString()
        key = (capture.source_id, capture.native_record_id, moment)
        replayed = key in self.intake.captures
        self.intake.captures.setdefault(key, capture)
        if self.intake.late.get("SubmitCapture", 0) > 0:
            self.intake.late["SubmitCapture"] -= 1
            # the caller's deadline ends this call
            await asyncio.Event().wait()
        receipt = Receipt(receipt_id="rcp_" + "_".join(key[1:]), replayed=replayed)
        return captures.SubmitCaptureResponse(receipt=receipt)

    async def GetReceipt(self, request: Any, context: Any) -> captures.GetReceiptResponse:  # noqa: N802
        raise NotImplementedError

    async def BatchGetReceipts(  # noqa: N802
        self, request: Any, context: Any
    ) -> captures.BatchGetReceiptsResponse:
        await self.intake.enter("BatchGetReceipts", context)
        receipts = await self.intake.receipts(request.receipt_ids, context)
        return captures.BatchGetReceiptsResponse(receipts=receipts)


@asynccontextmanager
async def receiving(port: int = 0, intake: Intake | None = None) -> AsyncIterator[Intake]:
    """A running intake on loopback."""
    intake = intake or Intake()
    server = grpc.aio.server()
    add_CollectorServiceServicer_to_server(_Collectors(intake), server)
    add_ArtifactServiceServicer_to_server(_Artifacts(intake), server)
    add_CaptureServiceServicer_to_server(_Captures(intake), server)
    add_CheckpointServiceServicer_to_server(_Checkpoints(intake), server)
    add_CheckpointServiceServicer_to_server(_Checkpoints(intake), server)
    intake.address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    await server.start()
    try:
        yield intake
    finally:
        await asyncio.shield(server.stop(None))
