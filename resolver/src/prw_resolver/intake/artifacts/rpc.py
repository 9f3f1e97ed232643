"""Evidence bytes over gRPC: translate, call one use case, translate back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

from prw.collector.v1 import artifact_service_pb2 as pb
from prw.collector.v1 import artifact_service_pb2_grpc as pb_grpc
from prw.errors import Code, PrwError
from prw_base.principal import current
from prw_base.server.rpc import Context
from prw_resolver.intake import uploads
from prw_resolver.intake.artifacts.model import Answer, Chunk, Declaration, Sent, Standing
from prw_resolver.intake.artifacts.service import store_many
from prw_resolver.intake.model import Declared
from prw_resolver.intake.rpc import timestamp
from prw_resolver.intake.service import Intake
from prw_resolver.objects.model import ObjectMeta

_STATUS: Final = {
    Standing.PENDING: pb.ARTIFACT_STATUS_PENDING,
    Standing.STORED: pb.ARTIFACT_STATUS_STORED,
    Standing.REFUSED: pb.ARTIFACT_STATUS_REFUSED,
}


class ArtifactServicer(pb_grpc.ArtifactServiceServicer):
    """Upload of evidence bytes."""

    def __init__(self, intake: Intake, draining: asyncio.Event) -> None:
        """`draining` is set when the server ends; open streams then end between two artifacts."""
        self._intake = intake
        self._draining = draining

    async def DeclareUpload(
        self, request: pb.DeclareUploadRequest, context: Context
    ) -> pb.DeclareUploadResponse:
        meta = ObjectMeta(request.sha256, request.bytes, request.media_type)
        declared = await uploads.declare(self._intake, current(), request.source_id, meta)
        return _from_declared(declared)

    async def PutArtifact(
        self, request_iterator: AsyncIterator[pb.PutArtifactRequest], context: Context
    ) -> pb.PutArtifactResponse:
        upload_id = await _upload_id(request_iterator)
        chunks = _chunks(request_iterator)
        stored = await uploads.put(self._intake, current(), upload_id, chunks)
        return pb.PutArtifactResponse(sha256=stored.sha256, status=pb.ARTIFACT_STATUS_STORED)

    async def StoreArtifacts(
        self, request_iterator: AsyncIterator[pb.StoreArtifactsRequest], context: Context
    ) -> AsyncIterator[pb.StoreArtifactsResponse]:
        sent = _sent(request_iterator)
        answers = store_many(self._intake, current(), sent, self._draining)
        async with aclosing(answers):
            async for answer in answers:
                yield _from_answer(answer)


async def _upload_id(messages: AsyncIterator[pb.PutArtifactRequest]) -> str:
    async for message in messages:
        if message.WhichOneof("data") == "upload_id":
            return message.upload_id
        break
    raise PrwError(Code.VALIDATION_FAILED, "the first message names the upload", field="upload_id")


async def _chunks(messages: AsyncIterator[pb.PutArtifactRequest]) -> AsyncIterator[bytes]:
    async for message in messages:
        if message.WhichOneof("data") != "chunk":
            raise PrwError(
                Code.VALIDATION_FAILED, "only the first message names the upload", field="chunk"
            )
        yield message.chunk


async def _sent(messages: AsyncIterator[pb.StoreArtifactsRequest]) -> AsyncIterator[Sent]:
    async for message in messages:
        if message.WhichOneof("data") == "declaration":
            yield _to_declaration(message.declaration)
        else:
            yield Chunk(message.chunk.sequence, message.chunk.data, message.chunk.last)


def _to_declaration(message: pb.ArtifactDeclaration) -> Declaration:
    meta = ObjectMeta(message.sha256, message.bytes, message.media_type)
    return Declaration(message.sequence, message.source_id, meta)


def _from_declared(value: Declared) -> pb.DeclareUploadResponse:
    """The answer to a declaration."""
    stored, pending = pb.ARTIFACT_STATUS_STORED, pb.ARTIFACT_STATUS_PENDING
    return pb.DeclareUploadResponse(
        upload_id=value.upload_id,
        status=stored if value.stored else pending,
        expires_at=timestamp(value.expires_at),
    )


def _from_answer(value: Answer) -> pb.StoreArtifactsResponse:
    """Where an artifact of the stream stands."""
    status = _STATUS[value.standing]
    return pb.StoreArtifactsResponse(
        sequence=value.sequence, status=status, error=_from_refusal(value.error)
    )


def _from_refusal(error: PrwError | None) -> pb.ArtifactRefusal | None:
    if error is None:
        return None
    return pb.ArtifactRefusal(
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        details=error.details,
        field=error.field or "",
    )
