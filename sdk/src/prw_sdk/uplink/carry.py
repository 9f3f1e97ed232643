"""One capture to the resolver: its parts over the stream that all captures share, then its submission."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import grpc

from prw.collector.v1.artifact_service_pb2 import (
    ARTIFACT_STATUS_STORED,
    DeclareUploadRequest,
    PutArtifactRequest,
)
from prw.collector.v1.artifact_service_pb2_grpc import ArtifactServiceStub
from prw.collector.v1.capture_service_pb2 import SubmitCaptureRequest
from prw.collector.v1.capture_service_pb2_grpc import CaptureServiceStub
from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error
from prw_base.client import call, retrying
from prw_base.faults import fault
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing, Blobs
from prw_sdk.spool.model import KeptCapture
from prw_sdk.uplink.address import ResolverAddress
from prw_sdk.uplink.messages import capture_message, normal_type
from prw_sdk.uplink.stream import (
    CHUNK,
    WINDOW,
    Artifact,
    ArtifactRefused,
    ArtifactStream,
    StreamUnsupported,
)

_DECLARE, _PUT = timedelta(seconds=10), timedelta(seconds=120)
_SUBMIT = timedelta(seconds=15)
NOT_GRANTED = frozenset({Code.SOURCE_SCOPE_DENIED, Code.TENANT_SCOPE_DENIED})
"""Denials of one source; the others go on."""


class Refused(Exception):
    """A capture that is refused here, before anything of it is submitted."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Carrier:
    """Brings captures to a resolver, many at once; at most `resolver.at_once` are being submitted."""

    at_once = WINDOW
    """Captures whose parts may be on their way together."""

    def __init__(
        self,
        artifacts: ArtifactServiceStub,
        captures: CaptureServiceStub,
        blobs: Blobs,
        resolver: ResolverAddress,
    ) -> None:
        self._artifacts = artifacts
        self._captures = captures
        self._blobs = blobs
        self._retry = resolver.retry
        self._submitting = asyncio.Semaphore(resolver.at_once)
        self._single = asyncio.Semaphore(resolver.at_once)
        self._stream: ArtifactStream | None = ArtifactStream(artifacts.StoreArtifacts, blobs)
        self._denied: PrwError | None = None

    async def aclose(self) -> None:
        """End the stream."""
        if self._stream is not None:
            await self._stream.aclose()

    async def carry(self, kept: KeptCapture) -> str:
        """The receipt's id of the capture; raises `Refused` and `PrwError`."""
        data: Mapping[str, Any] = json.loads(kept.body)
        try:
            return await self._carry(data)
        except (BlobMissing, BlobDamaged) as damaged:
            raise Refused("EVIDENCE_DAMAGED", str(damaged)) from damaged
        except PrwError as error:
            self._heed(error)
            raise

    def _heed(self, error: PrwError) -> None:
        """A caller that is denied itself stops at once: those that wait beside this one ask nothing more."""
        if error.entry.http in (401, 403) and error.code not in NOT_GRANTED:
            self._denied = error

    def _may_ask(self) -> None:
        if self._denied is not None:
            raise self._denied

    async def _carry(self, data: Mapping[str, Any]) -> str:
        await self._put_parts(data)
        fault("uplink.after_put")
        try:
            return await self._submit(data)
        except PrwError as error:
            if error.code is not Code.ARTIFACT_NOT_STORED:
                raise
        # the resolver lost bytes between its two answers: give them to it once more
        await self._put_parts(data)
        return await self._submit(data)

    async def _submit(self, data: Mapping[str, Any]) -> str:
        request = SubmitCaptureRequest(capture=capture_message(data))
        async with self._submitting:
            self._may_ask()
            method, retry = self._captures.SubmitCapture, self._retry
            answer = await call(method, request, _SUBMIT, retry)
        return answer.receipt.receipt_id

    async def _put_parts(self, data: Mapping[str, Any]) -> None:
        """All parts, side by side: each is declared in its turn, and awaited once."""
        parts = {part["sha256"]: part for part in data["parts"]}
        artifacts = [
            Artifact(
                data["source_id"], part["sha256"], part["bytes"], normal_type(part["media_type"])
            )
            for part in parts.values()
        ]
        tasks = [
            asyncio.create_task(retrying(partial(self._put, artifact), self._retry))
            for artifact in artifacts
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _put(self, artifact: Artifact) -> None:
        """Bring the bytes; where they are stored under another media type already, they are stored."""
        try:
            await self._bring(artifact)
        except PrwError as refused:
            if refused.code is not Code.IMMUTABLE_METADATA_CONFLICT:
                raise
            # one page served as two types: how it was served is said by each capture's own part
            held = refused.details.get("media_type", artifact.media_type)
            await self._bring(replace(artifact, media_type=held))

    async def _bring(self, artifact: Artifact) -> None:
        self._may_ask()
        if self._stream is None:
            return await self._alone(artifact)
        try:
            return await self._stream.store(artifact)
        except StreamUnsupported:
            self._stream = None
        except ArtifactRefused as refused:
            raise refused.error from refused
        except PrwError as broken:
            if broken.retryable or broken.entry.http in (401, 403):
                raise
            # the stream ended over one of those on their way: alone, each is answered for itself
        return await self._alone(artifact)

    async def _alone(self, artifact: Artifact) -> None:
        declared = DeclareUploadRequest(
            source_id=artifact.source_id,
            sha256=artifact.sha256,
            bytes=artifact.bytes,
            media_type=artifact.media_type,
        )
        async with self._single:
            self._may_ask()
            try:
                await self._upload(declared)
            except grpc.RpcError as error:
                refused = from_rpc_error(error)
                self._heed(refused)
                if refused.code is not Code.NOT_FOUND:
                    raise refused from error
                # the upload expired on the way (if_artifact_upload): declare it again, once
                await self._upload(declared)

    async def _upload(self, declared: DeclareUploadRequest) -> None:
        """Declare and upload as one attempt, since a later one may find the upload expired."""
        seconds = _DECLARE.total_seconds()
        answer = await self._artifacts.DeclareUpload(declared, timeout=seconds)
        if answer.status == ARTIFACT_STATUS_STORED:
            return
        body = await asyncio.to_thread(self._blobs.get, declared.sha256)
        chunks = _chunks(answer.upload_id, body)
        await self._artifacts.PutArtifact(chunks, timeout=_PUT.total_seconds())


async def _chunks(upload_id: str, body: bytes) -> AsyncIterator[PutArtifactRequest]:
    yield PutArtifactRequest(upload_id=upload_id)
    for start in range(0, len(body), CHUNK):
        yield PutArtifactRequest(chunk=body[start : start + CHUNK])
