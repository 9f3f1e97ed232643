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
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version
from types import MappingProxyType, TracebackType
from typing import Any

import grpc

from prw.collector.v1.artifact_service_pb2 import (
    ARTIFACT_STATUS_STORED,
    DeclareUploadRequest,
    PutArtifactRequest,
)
from prw.collector.v1.artifact_service_pb2_grpc import ArtifactServiceStub
from prw.collector.v1.capture_service_pb2 import BatchGetReceiptsRequest, SubmitCaptureRequest
from prw.collector.v1.capture_service_pb2_grpc import CaptureServiceStub
from prw.collector.v1.collector_service_pb2 import (
    RUNTIME_KIND_SCHEDULED,
    RegisterRequest,
    RegisterResponse,
)
from prw.collector.v1.collector_service_pb2_grpc import CollectorServiceStub
from prw.collector.v1.evidence_pb2 import Egress, ReceiptStatus, Region
from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error
from prw_base.client import call, retrying
from prw_base.faults import fault
from prw_sdk import evidence
from prw_sdk.report import Event, EventKind, Watch, unwatched
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import KeptCapture
from prw_sdk.uplink.address import ResolverAddress
from prw_sdk.uplink.messages import capture_message, normal_type

CHUNK = 256 * 1024
_REGISTER, _DECLARE = timedelta(seconds=10), timedelta(seconds=10)
_PUT, _SUBMIT = timedelta(seconds=120), timedelta(seconds=15)
_RECEIPTS = timedelta(seconds=5)
_NOT_GRANTED = frozenset({Code.SOURCE_SCOPE_DENIED, Code.TENANT_SCOPE_DENIED})
_TARGET = re.compile(r"targets\[(\d+)\]")
RECEIPT_INTERVAL = timedelta(seconds=30)
"""The least time between two questions about one receipt (if_receipt_get)."""
_RECEIPTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Identity:
    """The provisioned worker and the stable instance that this collector is."""

    worker: str
    instance: str


Denials = Mapping[str, PrwError]
"""Why the resolver does not grant a source, source by source."""

NOBODY: Denials = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Binding:
    """What the resolver binds this instance to, and the sources that it was asked for and does not grant."""

    tenant_id: str
    sources: frozenset[str]
    denied: Denials = field(default_factory=lambda: NOBODY)


@dataclass(frozen=True, slots=True)
class Drained:
    """What one walk over the spool came to: captures with a new receipt, and captures refused for good.

    `denied` says why nothing of a source was sent; its captures wait in the spool.
    """

    submitted: int = 0
    refused: int = 0
    denied: Denials = field(default_factory=lambda: NOBODY)

    def __add__(self, other: Drained) -> Drained:
        return Drained(
            self.submitted + other.submitted,
            self.refused + other.refused,
            MappingProxyType({**self.denied, **other.denied}),
        )


class Uplink:
    """Sends the captures of a spool to one resolver. An asynchronous context manager."""

    def __init__(self, resolver: ResolverAddress, spool: Spool, watch: Watch = unwatched) -> None:
        self._resolver = resolver
        self._spool = spool
        self._watch = watch
        self._denied: dict[str, PrwError] = {}

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
        """Record this instance with the sources it will send; raises `PrwError` where none of them is granted.

        Those that are not granted are in `Binding.denied`, and nothing of them is sent.
        """
        wanted = sorted(set(targets))
        while True:
            try:
                answer = await self._register(wanted, region, egress)
            except PrwError as error:
                wanted = self._without_denied(wanted, error)
            else:
                return Binding(
                    answer.tenant_id, frozenset(answer.granted_sources), dict(self._denied)
                )

    def _without_denied(self, wanted: Sequence[str], error: PrwError) -> list[str]:
        named = _TARGET.fullmatch(error.field or "")
        if error.code not in _NOT_GRANTED or named is None or len(wanted) == 1:
            raise error
        denied = wanted[int(named[1])]
        self._denied[denied] = error
        return [source for source in wanted if source != denied]

    async def _register(
        self, targets: Sequence[str], region: evidence.Region, egress: evidence.Egress
    ) -> RegisterResponse:
        who = identity(self._resolver)
        request = RegisterRequest(
            worker_id=who.worker,
            instance_id=who.instance,
            version=version("prw-sdk"),
            runtime="local-process",
            runtime_kind=RUNTIME_KIND_SCHEDULED,
            execution_region=Region(**asdict(region)),
            egress=Egress(**asdict(egress)),
            targets=targets,
            capabilities=["html"],
        )
        return await call(self._collectors.Register, request, _REGISTER, self._resolver.retry)

    async def drain(self) -> Drained:
        """Send every capture that is kept and not submitted; raises `PrwError` when sending must stop.

        A capture that the resolver will not take is marked as refused, and later ones go on; so do the other sources
        where one is denied. A denial of the caller itself, or a resolver that stays unreachable, stops everything and
        loses nothing.
        """
        await asyncio.to_thread(self._mend)
        total, after = Drained(denied=dict(self._denied)), 0
        while page := await asyncio.to_thread(self._spool.ledger.kept, after):
            total += await self._send_page(page)
            after = page[-1].row
        return total

    def _mend(self) -> None:
        for damaged in self._spool.ledger.damaged():
            parts = json.loads(damaged.body)["parts"]
            if all(self._spool.blobs.is_whole(part["sha256"]) for part in parts):
                self._spool.ledger.mend(damaged.row)

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
            # what a worker has begun to note is noted before anybody closes the spool
            await asyncio.gather(*workers, return_exceptions=True)
        return sum(done, Drained())

    async def _work(self, waiting: Iterator[KeptCapture]) -> Drained:
        total = Drained()
        for kept in waiting:
            if kept.key.source_id not in self._denied:
                total += await self._send(kept)
        return total

    async def _send(self, kept: KeptCapture) -> Drained:
        data: dict[str, Any] = json.loads(kept.body)
        try:
            receipt_id = await self._submit(kept, data)
        except (BlobMissing, BlobDamaged) as damaged:
            return await self._refused(kept, "EVIDENCE_DAMAGED", str(damaged))
        except PrwError as error:
            if error.code in _NOT_GRANTED:
                return self._deny(kept.key.source_id, error)
            if error.retryable or error.entry.http in (401, 403):
                raise
            return await self._refused(kept, error.code.value, error.message)
        fault("uplink.after_submit")
        await asyncio.to_thread(self._spool.ledger.mark_submitted, kept.row, receipt_id)
        fault("uplink.after_mark")
        self._watch(Event(EventKind.SUBMITTED, kept.key.source_id, kept.key.native_id))
        return Drained(submitted=1)

    def _deny(self, source_id: str, error: PrwError) -> Drained:
        if source_id not in self._denied:
            self._denied[source_id] = error
            self._watch(
                Event(EventKind.FAILED, source_id, code=error.code.value, error=error.message)
            )
        return Drained(denied={source_id: error})

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
            if refused.code is Code.NOT_FOUND:
                # the upload expired on the way (if_artifact_upload): declare it again, once
                await self._upload(declared)
                return
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

    async def ask_receipts(self, now: datetime) -> int:
        """Ask what became of the submitted captures, in batches; how many were asked for.

        A receipt is not asked for more often than every 30 s, nor once its capture is resolved or rejected.
        """
        ledger, after, asked = self._spool.ledger, 0, 0
        before = now - RECEIPT_INTERVAL
        while rows := await asyncio.to_thread(
            ledger.receipts_to_ask, after, before, _RECEIPTS_AT_ONCE
        ):
            statuses = await self._statuses(dict(rows))
            await asyncio.to_thread(ledger.note_receipts, statuses, now)
            after, asked = rows[-1][0], asked + len(rows)
        return asked

    async def _statuses(self, receipts: Mapping[int, str]) -> dict[int, str]:
        request = BatchGetReceiptsRequest(receipt_ids=sorted(set(receipts.values())))
        method, retry = self._captures.BatchGetReceipts, self._resolver.retry
        answer = await call(method, request, _RECEIPTS, retry)
        said = {one.receipt_id: _status(one.status) for one in answer.receipts}
        return {row: said[receipt] for row, receipt in receipts.items()}

    async def _refused(self, kept: KeptCapture, code: str, message: str) -> Drained:
        await asyncio.to_thread(self._spool.ledger.mark_refused, kept.row, code, message)
        key = kept.key
        self._watch(
            Event(EventKind.REFUSED, key.source_id, key.native_id, code=code, error=message)
        )
        return Drained(refused=1)


def _status(status: ReceiptStatus.ValueType) -> str:
    return ReceiptStatus.Name(status).removeprefix("RECEIPT_STATUS_").lower()


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
