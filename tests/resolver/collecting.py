"""A resolver that serves in this process, and collectors that call it, for the tests of intake."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import SecretStr

from prw.collector.v1 import (
    artifact_service_pb2,
    artifact_service_pb2_grpc,
    capture_service_pb2,
    capture_service_pb2_grpc,
    checkpoint_service_pb2,
    checkpoint_service_pb2_grpc,
    collector_service_pb2,
    collector_service_pb2_grpc,
    evidence_pb2,
)
from prw.errors import PrwError
from prw.grpc_errors import from_rpc_error
from prw_base.canonical import canonical_json, sha256_hex
from prw_base.client import open_channel
from prw_base.principal import Role
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant, Source
from prw_resolver.access.service import Issuer
from prw_resolver.bootstrap import Parts, build_issuer, build_server, open_parts
from prw_resolver.settings import ResolverSettings
from prw_resolver.vocabulary.service import publish

T = TypeVar("T")

TENANTS = ("ten_synth_a", "ten_synth_b")
CATALOG = "main"
SOURCES = ("src_one", "src_two")
CHUNK = 256 * 1024
AT = datetime(2024, 10, 10, 3, 31, 0, 123456, tzinfo=UTC)
PAGE = b"<html><h1>An SSD of one terabyte</h1></html>"


def digest(body: bytes) -> str:
    """Lower-case hex SHA-256."""
    return hashlib.sha256(body).hexdigest()


def timestamp(moment: datetime) -> Timestamp:
    """A moment as a message."""
    message = Timestamp()
    message.FromDatetime(moment)
    return message


def part(body: bytes = PAGE, role: str = "page", **other: Any) -> evidence_pb2.Part:
    """A part that was answered with `body`."""
    fields: dict[str, Any] = {
        "role": role,
        "sha256": digest(body),
        "bytes": len(body),
        "media_type": "text/html; charset=utf-8",
        "charset_used": "utf-8",
        "url_asked": "https://shop.example/p/1",
        "url_reached": "https://shop.example/p/1",
        "http_status": 200,
        "headers": [evidence_pb2.Header(name="etag", value='"1"')],
        "fetched_at": timestamp(AT + timedelta(seconds=1)),
    }
    return evidence_pb2.Part(**(fields | other))


def capture(
    source_id: str = "ten_synth_a.src_one", config: dict[str, Any] | None = None, **other: Any
) -> evidence_pb2.Capture:
    """A capture of one page."""
    settings: dict[str, Any] = {"locale": "de-DE", "depth": 2} if config is None else config
    fields: dict[str, Any] = {
        "schema_version": 1,
        "source_id": source_id,
        "native_record_id": "https://shop.example/p/1",
        "captured_at": timestamp(AT),
        "adapter": evidence_pb2.AdapterVersion(name="schemaorg", version="1.0.0"),
        "config_digest": sha256_hex(canonical_json(settings)),
        "parts": [part()],
        "presence": evidence_pb2.PRESENCE_PRESENT,
        "execution_region": evidence_pb2.Region(country="DE", label="Frankfurt"),
        "egress": evidence_pb2.Egress(country="DE", verified=False),
    }
    message = evidence_pb2.Capture(**(fields | other))
    message.config.update(settings)
    return message


class Caller:
    """A client of the collector's services; every refusal is a PrwError."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._artifacts = artifact_service_pb2_grpc.ArtifactServiceStub(channel)
        self._captures = capture_service_pb2_grpc.CaptureServiceStub(channel)
        self._checkpoints = checkpoint_service_pb2_grpc.CheckpointServiceStub(channel)
        self._collectors = collector_service_pb2_grpc.CollectorServiceStub(channel)

    async def register(self, **fields: Any) -> collector_service_pb2.RegisterResponse:
        """Register an instance."""
        request = collector_service_pb2.RegisterRequest(**fields)
        return await _typed(self._collectors.Register(request, timeout=10))

    async def declare(
        self,
        body: bytes = PAGE,
        source_id: str = "ten_synth_a.src_one",
        media_type: str = "text/html",
        size: int | None = None,
    ) -> artifact_service_pb2.DeclareUploadResponse:
        """Declare that `body` will be uploaded."""
        request = artifact_service_pb2.DeclareUploadRequest(
            source_id=source_id,
            sha256=digest(body),
            bytes=len(body) if size is None else size,
            media_type=media_type,
        )
        return await _typed(self._artifacts.DeclareUpload(request, timeout=10))

    async def send(
        self, upload_id: str, body: bytes, chunk: int = CHUNK
    ) -> artifact_service_pb2.PutArtifactResponse:
        """Stream `body` as the bytes of an upload."""
        return await self.stream(_requests(upload_id, body, chunk))

    async def stream(
        self,
        requests: Sequence[artifact_service_pb2.PutArtifactRequest]
        | AsyncIterator[artifact_service_pb2.PutArtifactRequest],
    ) -> artifact_service_pb2.PutArtifactResponse:
        """Send exactly these messages of an upload; those of an iterator without a deadline."""
        if isinstance(requests, AsyncIterator):
            return await _typed(self._artifacts.PutArtifact(requests))
        return await _typed(self._artifacts.PutArtifact(iter(requests), timeout=120))

    async def put(self, body: bytes = PAGE, source_id: str = "ten_synth_a.src_one") -> str:
        """Declare and send; the digest."""
        declared = await self.declare(body, source_id)
        return (await self.send(declared.upload_id, body)).sha256

    async def beat(
        self,
        at: datetime,
        run: collector_service_pb2.RunReport | None = None,
        instance_id: str = "ci_one",
        receipt_ids: Sequence[str] = (),
    ) -> collector_service_pb2.HeartbeatResponse:
        """Say that an instance lives, or what a run came to."""
        request = collector_service_pb2.HeartbeatRequest(
            instance_id=instance_id, at=timestamp(at), run=run, receipt_ids=receipt_ids
        )
        return await _typed(self._collectors.Heartbeat(request, timeout=5))

    async def checkpoint(self, **key: Any) -> checkpoint_service_pb2.Checkpoint:
        """Read a checkpoint."""
        request = checkpoint_service_pb2.GetCheckpointRequest(key=checkpoint_key(**key))
        return (await _typed(self._checkpoints.GetCheckpoint(request, timeout=5))).checkpoint

    async def advance(
        self,
        expected: int,
        state: str,
        deferred: Sequence[checkpoint_service_pb2.DeferredItem] = (),
        **key: Any,
    ) -> checkpoint_service_pb2.Checkpoint:
        """Advance a checkpoint."""
        request = checkpoint_service_pb2.AdvanceCheckpointRequest(
            key=checkpoint_key(**key), expected_revision=expected, state=state, deferred=deferred
        )
        return (await _typed(self._checkpoints.AdvanceCheckpoint(request, timeout=5))).checkpoint

    async def submit(self, message: evidence_pb2.Capture) -> evidence_pb2.Receipt:
        """Submit a capture."""
        request = capture_service_pb2.SubmitCaptureRequest(capture=message)
        return (await _typed(self._captures.SubmitCapture(request, timeout=15))).receipt

    async def receipt(self, receipt_id: str) -> evidence_pb2.Receipt:
        """Read one receipt."""
        request = capture_service_pb2.GetReceiptRequest(receipt_id=receipt_id)
        return (await _typed(self._captures.GetReceipt(request, timeout=5))).receipt

    async def receipts(self, receipt_ids: Sequence[str]) -> list[evidence_pb2.Receipt]:
        """Read many receipts."""
        request = capture_service_pb2.BatchGetReceiptsRequest(receipt_ids=receipt_ids)
        return list((await _typed(self._captures.BatchGetReceipts(request, timeout=5))).receipts)


def checkpoint_key(**other: Any) -> checkpoint_service_pb2.CheckpointKey:
    """The key of a checkpoint of the first source."""
    fields = {"source_id": "ten_synth_a.src_one", "adapter": "shop", "partition": ""}
    return checkpoint_service_pb2.CheckpointKey(**(fields | other))


def _requests(
    upload_id: str, body: bytes, chunk: int
) -> list[artifact_service_pb2.PutArtifactRequest]:
    starts = range(0, len(body), chunk)
    chunks = [
        artifact_service_pb2.PutArtifactRequest(chunk=body[start : start + chunk])
        for start in starts
    ]
    return [artifact_service_pb2.PutArtifactRequest(upload_id=upload_id), *chunks]


async def _typed(call: Awaitable[T]) -> T:
    try:
        return await call
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error


async def refusal(call: Any) -> PrwError:
    """The PrwError that `call` ends with."""
    try:
        await call
    except PrwError as error:
        return error
    raise AssertionError("the call was answered")


@dataclass
class Running:
    """A resolver with two tenants, each with a catalogue, two sources and a published vocabulary."""

    parts: Parts
    issuer: Issuer
    target: str
    channels: AsyncExitStack

    async def token(self, grant: ClientGrant) -> str:
        """A token of a new client."""
        return (await access.provision_client(self.issuer, grant)).token

    async def collector(
        self,
        tenant: str = "ten_synth_a",
        instance: str = "ci_one",
        worker: str | None = "cw_one",
        sources: Sequence[str] = ("src_one",),
        scopes: Sequence[str] = COLLECTOR_SCOPES,
    ) -> Caller:
        """A collector that may fetch those of the tenant's sources."""
        names = tuple(f"{tenant}.{name}" for name in sources)
        grant = ClientGrant(tenant, CATALOG, instance, tuple(scopes), worker, names)
        return await self.caller(await self.token(grant))

    async def person(self, tenant: str = "ten_synth_a", role: Role = Role.VIEWER) -> Caller:
        """A person of the tenant."""
        made = await access.provision_operator(self.issuer, tenant, CATALOG, "anna", role)
        return await self.caller(made.token)

    async def caller(self, token: str | None) -> Caller:
        """Whoever holds `token`."""
        return Caller(await self.channels.enter_async_context(open_channel(self.target, token)))


def settings_for(dsns: dict[str, str], state: Path, **other: Any) -> ResolverSettings:
    """Settings of a resolver on a test's database."""
    return ResolverSettings(
        state_folder=state,
        database_dsn=SecretStr(dsns["resolver_app"]),
        address="127.0.0.1:0",
        workers_in_process=False,
        **other,
    )


@asynccontextmanager
async def running(dsns: dict[str, str], state: Path, **other: Any) -> AsyncIterator[Running]:
    """A resolver that serves in this process until the block ends."""
    settings = settings_for(dsns, state, **other)
    async with AsyncExitStack() as channels:
        parts = await channels.enter_async_context(open_parts(settings, dsns["resolver_app"]))
        for tenant in TENANTS:
            await found(parts, tenant)
        server = await channels.enter_async_context(build_server(parts))
        issuer = build_issuer(settings, parts.db)
        yield Running(parts, issuer, f"127.0.0.1:{server.port}", channels)


async def found(parts: Parts, tenant: str) -> None:
    """Give a tenant its catalogue, sources and vocabulary."""
    await access.put_catalog(parts.db, tenant, CATALOG, "")
    for name in SOURCES:
        source_id = f"{tenant}.{name}"
        await access.put_source(parts.db, Source(tenant, CATALOG, source_id, name, True, {}))
    await publish(parts.db, tenant, CATALOG)


async def gathered(*calls: Any) -> list[Any]:
    """The results or errors of calls made at once."""
    return list(await asyncio.gather(*calls, return_exceptions=True))
