"""Sending what the spool holds: register, put artifacts, submit captures, note receipts.

Every step may be repeated: bytes that are stored are not sent again, the same capture gets the same receipt, and a
receipt is noted once. So a crash anywhere, a second push, or two at once change nothing.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from types import TracebackType
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from prw.collector.v1.artifact_service_pb2 import (
    ARTIFACT_STATUS_STORED,
    DeclareUploadRequest,
    PutArtifactRequest,
)
from prw.collector.v1.artifact_service_pb2_grpc import ArtifactServiceStub
from prw.collector.v1.capture_service_pb2 import SubmitCaptureRequest
from prw.collector.v1.capture_service_pb2_grpc import CaptureServiceStub
from prw.collector.v1.collector_service_pb2 import RUNTIME_KIND_SCHEDULED, RegisterRequest
from prw.collector.v1.collector_service_pb2_grpc import CollectorServiceStub
from prw.collector.v1.evidence_pb2 import (
    PRESENCE_ABSENT,
    PRESENCE_PRESENT,
    AdapterVersion,
    Capture,
    Citation,
    Egress,
    Header,
    Part,
    Region,
)
from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error
from prw_base.client import call, retrying
from prw_base.faults import fault
from prw_sdk import evidence
from prw_sdk.report import Event, EventKind, Watch, unwatched
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import KeptCapture, from_text
from prw_sdk.uplink.address import ResolverAddress

CHUNK = 256 * 1024
_REGISTER, _DECLARE = timedelta(seconds=10), timedelta(seconds=10)
_PUT, _SUBMIT = timedelta(seconds=120), timedelta(seconds=15)
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")
_UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Identity:
    """The provisioned worker and the stable instance that this collector is."""

    worker: str
    instance: str


@dataclass(frozen=True, slots=True)
class Binding:
    """What the resolver binds this instance to."""

    tenant_id: str
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class Drained:
    """What one walk over the spool came to: captures with a new receipt, and captures refused for good."""

    submitted: int = 0
    refused: int = 0

    def __add__(self, other: Drained) -> Drained:
        return Drained(self.submitted + other.submitted, self.refused + other.refused)


class Uplink:
    """Sends the captures of a spool to one resolver. An asynchronous context manager."""

    def __init__(self, resolver: ResolverAddress, spool: Spool, watch: Watch = unwatched) -> None:
        self._resolver = resolver
        self._spool = spool
        self._watch = watch

    async def __aenter__(self) -> Uplink:
        self._channel = self._resolver.open()
        self._collectors = CollectorServiceStub(self._channel)
        self._artifacts = ArtifactServiceStub(self._channel)
        self._captures = CaptureServiceStub(self._channel)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._channel.close()

    async def register(
        self,
        targets: Sequence[str],
        region: evidence.Region = evidence.Region(),  # noqa: B008  # frozen, so shared safely
        egress: evidence.Egress = evidence.Egress(),  # noqa: B008  # frozen, so shared safely
    ) -> Binding:
        """Record this instance with the sources it will send; raises `PrwError` where one is not granted."""
        who = identity(self._resolver)
        request = RegisterRequest(
            worker_id=who.worker,
            instance_id=who.instance,
            version=version("prw-sdk"),
            runtime="local-process",
            runtime_kind=RUNTIME_KIND_SCHEDULED,
            execution_region=Region(**asdict(region)),
            egress=Egress(**asdict(egress)),
            targets=sorted(set(targets)),
            capabilities=["html"],
        )
        answer = await call(self._collectors.Register, request, _REGISTER, self._resolver.retry)
        return Binding(answer.tenant_id, frozenset(answer.granted_sources))

    async def drain(self) -> Drained:
        """Send every capture that is kept and not submitted; raises `PrwError` when sending must stop.

        A capture that the resolver will not take is marked as refused, and later ones go on. A denial of the caller
        itself, or a resolver that stays unreachable, stops everything and loses nothing.
        """
        total, after = Drained(), 0
        while page := await asyncio.to_thread(self._spool.ledger.kept, after):
            total += await self._send_page(page)
            after = page[-1].row
        return total

    async def follow(self, more: asyncio.Event, ended: asyncio.Event) -> Drained:
        """Drain again whenever `more` is set, until `ended` is set and nothing is left."""
        total = Drained()
        while True:
            more.clear()
            last = ended.is_set()
            total += await self.drain()
            if last:
                return total
            await more.wait()

    async def _send_page(self, page: Sequence[KeptCapture]) -> Drained:
        waiting = iter(page)
        workers = [
            asyncio.create_task(self._work(waiting))
            for _ in range(min(self._resolver.at_once, len(page)))
        ]
        try:
            done = await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return sum(done, Drained())

    async def _work(self, waiting: Iterator[KeptCapture]) -> Drained:
        total = Drained()
        for kept in waiting:
            total += await self._send(kept)
        return total

    async def _send(self, kept: KeptCapture) -> Drained:
        data: dict[str, Any] = json.loads(kept.body)
        try:
            receipt_id = await self._submit(kept, data)
        except (BlobMissing, BlobDamaged) as damaged:
            return await self._refused(kept, "EVIDENCE_DAMAGED", str(damaged))
        except PrwError as error:
            if error.retryable or error.entry.http in (401, 403):
                raise
            return await self._refused(kept, error.code.value, error.message)
        fault("uplink.after_submit")
        await asyncio.to_thread(self._spool.ledger.mark_submitted, kept.row, receipt_id)
        fault("uplink.after_mark")
        self._watch(Event(EventKind.SUBMITTED, kept.key.source_id, kept.key.native_id))
        return Drained(submitted=1)

    async def _submit(self, kept: KeptCapture, data: Mapping[str, Any]) -> str:
        await self._put_parts(data)
        fault("uplink.after_put")
        try:
            return await self._submit_once(data)
        except PrwError as error:
            if error.code is not Code.ARTIFACT_NOT_STORED:
                raise
        # the resolver lost bytes between its two answers: give them to it once more
        await self._put_parts(data)
        return await self._submit_once(data)

    async def _submit_once(self, data: Mapping[str, Any]) -> str:
        request = SubmitCaptureRequest(capture=capture_message(data))
        answer = await call(self._captures.SubmitCapture, request, _SUBMIT, self._resolver.retry)
        return answer.receipt.receipt_id

    async def _put_parts(self, data: Mapping[str, Any]) -> None:
        for part in {part["sha256"]: part for part in data["parts"]}.values():
            put = partial(self._put, data["source_id"], part)
            await retrying(put, self._resolver.retry)

    async def _put(self, source_id: str, part: Mapping[str, Any]) -> None:
        """Bring the bytes; where they are stored under another media type already, they are stored."""
        declared = DeclareUploadRequest(
            source_id=source_id,
            sha256=part["sha256"],
            bytes=part["bytes"],
            media_type=normal_type(part["media_type"]),
        )
        try:
            await self._upload(declared)
        except grpc.RpcError as error:
            refused = from_rpc_error(error)
            if refused.code is not Code.IMMUTABLE_METADATA_CONFLICT:
                raise
            # one page served as two types: how it was served is said by each capture's own part
            declared.media_type = refused.details.get("media_type", declared.media_type)
            await self._upload(declared)

    async def _upload(self, declared: DeclareUploadRequest) -> None:
        """Declare and upload as one attempt, since a later one may find the upload expired."""
        seconds = _DECLARE.total_seconds()
        answer = await self._artifacts.DeclareUpload(declared, timeout=seconds)
        if answer.status == ARTIFACT_STATUS_STORED:
            return
        body = await asyncio.to_thread(self._spool.blobs.get, declared.sha256)
        chunks = _chunks(answer.upload_id, body)
        await self._artifacts.PutArtifact(chunks, timeout=_PUT.total_seconds())

    async def _refused(self, kept: KeptCapture, code: str, message: str) -> Drained:
        await asyncio.to_thread(self._spool.ledger.mark_refused, kept.row, code, message)
        key = kept.key
        self._watch(
            Event(EventKind.REFUSED, key.source_id, key.native_id, code=code, error=message)
        )
        return Drained(refused=1)


async def _chunks(upload_id: str, body: bytes) -> AsyncIterator[PutArtifactRequest]:
    yield PutArtifactRequest(upload_id=upload_id)
    for start in range(0, len(body), CHUNK):
        yield PutArtifactRequest(chunk=body[start : start + CHUNK])


def identity(resolver: ResolverAddress) -> Identity:
    """Worker and instance as the settings say, else as the token says; raises `PrwError` where neither does.

    The token is only read, not trusted: the resolver decides by its own binding.
    """
    claims = _claims(resolver.token())
    worker = resolver.worker or claims.get("worker_id")
    instance = resolver.instance or claims.get("sub")
    if not isinstance(worker, str) or not isinstance(instance, str):
        raise PrwError(
            Code.VALIDATION_FAILED,
            "the token names no worker or instance: give resolver.worker and resolver.instance",
            field="resolver.worker",
        )
    return Identity(worker, instance)


def _claims(token: str) -> Mapping[str, Any]:
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}


def normal_type(media_type: str) -> str:
    """A media type as the object store keeps it: lower case, without parameters."""
    bare = media_type.partition(";")[0].strip().lower()
    return bare if _MEDIA_TYPE.fullmatch(bare) and len(bare) <= 127 else _UNKNOWN_TYPE


def capture_message(data: Mapping[str, Any]) -> Capture:
    """The capture of the spool's canonical JSON as the contract's message."""
    present = data["presence"] == "present"
    return Capture(
        schema_version=data["schema_version"],
        source_id=data["source_id"],
        native_record_id=data["native_record_id"],
        captured_at=_timestamp(data["captured_at"]),
        adapter=AdapterVersion(**data["adapter"]),
        config=json_format.ParseDict(data["config"], Struct()),
        config_digest=data["config_digest"],
        parts=[_part_message(part) for part in data["parts"]],
        presence=PRESENCE_PRESENT if present else PRESENCE_ABSENT,
        execution_region=Region(**data["execution_region"]),
        egress=Egress(**data["egress"]),
    )


def _part_message(data: Mapping[str, Any]) -> Part:
    cites = data["cites"]
    return Part(
        role=data["role"],
        sha256=data["sha256"],
        bytes=data["bytes"],
        media_type=data["media_type"],
        charset_declared=data["charset_declared"] or "",
        charset_used=data["charset_used"] or "",
        url_asked=data["url_asked"],
        url_reached=data["url_reached"],
        http_status=data["http_status"],
        headers=[Header(name=name, value=value) for name, value in data["headers"]],
        fetched_at=_timestamp(data["fetched_at"]),
        cites=cites
        and Citation(captured_at=_timestamp(cites["captured_at"]), sha256=cites["sha256"]),
    )


def _timestamp(text: str) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(from_text(text))
    return stamp
