"""Requests of every method for something of another tenant's, and the refusals that are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from prw.catalog.v1 import catalog_service_pb2 as catalog
from prw.changes.v1 import change_service_pb2 as changes
from prw.changes.v1 import export_service_pb2 as exports
from prw.collector.v1 import artifact_service_pb2 as artifacts
from prw.collector.v1 import capture_service_pb2 as captures
from prw.collector.v1 import checkpoint_service_pb2 as checkpoints
from prw.collector.v1 import collector_service_pb2 as collectors
from prw.collector.v1 import evidence_pb2 as evidence
from prw.errors import Code
from prw.operator.v1 import review_service_pb2 as review
from prw_examples.demo.layout import COLLECTOR, PRODUCT, WORKER
from tests.resolver.collecting import digest

OTHER, THEIRS = "ten_other", "src_theirs"
"""The second tenant; its catalogue, worker, instance, consumer and person are named as the first one's."""

EXPORT_TOKEN = "first"
COMING = b"<html>a page to come</html>"
"""What the first tenant has declared and not yet sent."""

DENIED = frozenset({Code.TENANT_SCOPE_DENIED, Code.SOURCE_SCOPE_DENIED, Code.NOT_FOUND})
ANSWERED = frozenset[Code]()
"""The caller's own, which is something else: the answer must hold nothing of the first tenant's."""


@dataclass(frozen=True, slots=True)
class Things:
    """What the first tenant has, and what the second has of its own."""

    capture: evidence.Capture
    receipt_id: str
    upload_id: str
    case_id: str
    case_revision: int
    item_id: str
    own_case_id: str
    export: exports.Manifest


@dataclass(frozen=True, slots=True)
class Probe:
    """A request for something of the first tenant's, by a caller of that kind, and the refusals that are right."""

    method: str
    caller: str
    requests: Sequence[Message]
    refusals: frozenset[Code] = DENIED


def probes(things: Things) -> Iterator[Probe]:
    """At least one for each method of the contract."""
    yield from _collecting(things)
    yield from _storing(things)
    yield from _reporting(things)
    yield from _reviewing(things)
    yield from _following()
    yield from _exporting(things)
    yield from _browsing(things)


def _collecting(things: Things) -> Iterator[Probe]:
    service, source = "prw.collector.v1", things.capture.source_id
    registered = collectors.RegisterRequest(
        worker_id=WORKER, instance_id=COLLECTOR, targets=[source]
    )
    declared = artifacts.DeclareUploadRequest(
        source_id=source, sha256=digest(COMING), bytes=len(COMING), media_type="text/html"
    )
    upload = [
        artifacts.PutArtifactRequest(upload_id=things.upload_id),
        artifacts.PutArtifactRequest(chunk=COMING),
    ]
    submit = captures.SubmitCaptureRequest(capture=things.capture)
    # Citing bytes of which only the digest is known.
    cited = captures.SubmitCaptureRequest(capture=things.capture)
    cited.capture.source_id = THEIRS
    one = captures.GetReceiptRequest(receipt_id=things.receipt_id)
    many = captures.BatchGetReceiptsRequest(receipt_ids=[things.receipt_id])
    not_stored = frozenset({Code.ARTIFACT_NOT_STORED})
    yield Probe(f"{service}.CollectorService.Register", "collector", [registered])
    yield Probe(f"{service}.ArtifactService.DeclareUpload", "collector", [declared])
    yield Probe(f"{service}.ArtifactService.PutArtifact", "collector", upload)
    yield Probe(f"{service}.CaptureService.SubmitCapture", "collector", [submit])
    yield Probe(f"{service}.CaptureService.SubmitCapture", "collector", [cited], not_stored)
    for caller in ("collector", "operator"):
        yield Probe(f"{service}.CaptureService.GetReceipt", caller, [one])
        yield Probe(f"{service}.CaptureService.BatchGetReceipts", caller, [many])


def _storing(things: Things) -> Iterator[Probe]:
    method = "prw.collector.v1.ArtifactService.StoreArtifacts"
    declared = artifacts.ArtifactDeclaration(
        sequence=1,
        source_id=things.capture.source_id,
        sha256=digest(COMING),
        bytes=len(COMING),
        media_type="text/html",
    )
    # Bytes that the first tenant has, for a source of the own: they are awaited like any others.
    held = artifacts.ArtifactDeclaration()
    held.CopyFrom(declared)
    held.source_id, held.sha256 = THEIRS, things.capture.parts[0].sha256
    undeclared = artifacts.ArtifactChunk(sequence=1, data=COMING, last=True)
    wrong = frozenset({Code.VALIDATION_FAILED})
    yield Probe(method, "collector", [artifacts.StoreArtifactsRequest(declaration=declared)])
    yield Probe(method, "collector", [artifacts.StoreArtifactsRequest(declaration=held)], ANSWERED)
    yield Probe(method, "collector", [artifacts.StoreArtifactsRequest(chunk=undeclared)], wrong)


def _reporting(things: Things) -> Iterator[Probe]:
    service, source = "prw.collector.v1", things.capture.source_id
    beat = collectors.HeartbeatRequest(instance_id=COLLECTOR, at=things.capture.captured_at)
    asking = collectors.HeartbeatRequest(
        instance_id=COLLECTOR, at=things.capture.captured_at, receipt_ids=[things.receipt_id]
    )
    # The name is an instance of the first tenant's only.
    unknown = frozenset({Code.UNKNOWN_INSTANCE})
    key = checkpoints.CheckpointKey(source_id=source, adapter=things.capture.adapter.name)
    get = checkpoints.GetCheckpointRequest(key=key)
    advance = checkpoints.AdvanceCheckpointRequest(key=key, state="{}")
    yield Probe(f"{service}.CollectorService.Heartbeat", "collector", [beat], unknown)
    yield Probe(f"{service}.CollectorService.Heartbeat", "collector", [asking])
    yield Probe(f"{service}.CheckpointService.GetCheckpoint", "collector", [get])
    yield Probe(f"{service}.CheckpointService.AdvanceCheckpoint", "collector", [advance])


def _reviewing(things: Things) -> Iterator[Probe]:
    service = "prw.operator.v1.ReviewService"
    decide = review.DecideRequest(
        case_id=things.case_id,
        expected_revision=things.case_revision,
        action=review.DECISION_ACTION_ACCEPT,
        create_item=True,
        rationale="It is one of ours.",
        idempotency_key="key_probe",
    )
    # The own case, but another's item.
    mapped = review.DecideRequest()
    mapped.CopyFrom(decide)
    mapped.case_id, mapped.expected_revision = things.own_case_id, 1
    mapped.map_to = things.item_id
    yield Probe(f"{service}.ListCases", "operator", [review.ListCasesRequest()], ANSWERED)
    yield Probe(f"{service}.GetCase", "operator", [review.GetCaseRequest(case_id=things.case_id)])
    yield Probe(f"{service}.Decide", "operator", [decide])
    yield Probe(f"{service}.Decide", "operator", [mapped], DENIED | {Code.ITEM_NOT_ACTIVE})


def _following() -> Iterator[Probe]:
    service = "prw.changes.v1.ChangeService"
    stream = changes.StreamChangesRequest(consumer_id=PRODUCT, history_epoch=1)
    page = changes.ListChangesRequest(consumer_id=PRODUCT, history_epoch=1)
    report = changes.ReportProgressRequest(consumer_id=PRODUCT, history_epoch=1, position=5)
    register = changes.RegisterConsumerRequest(consumer_id=PRODUCT)
    epoch = changes.GetEpochRequest()
    # Told of the own stream, which is empty.
    ahead = frozenset({Code.CURSOR_AHEAD})
    # Before the second tenant has a consumer of that name, and with one.
    yield Probe(f"{service}.StreamChanges", "product", [stream])
    yield Probe(f"{service}.ListChanges", "product", [page])
    yield Probe(f"{service}.ReportProgress", "product", [report])
    yield Probe(f"{service}.GetEpoch", "product", [epoch], ANSWERED)
    yield Probe(f"{service}.RegisterConsumer", "product", [register], ANSWERED)
    yield Probe(f"{service}.StreamChanges", "product", [stream], ANSWERED)
    yield Probe(f"{service}.ListChanges", "product", [page], ANSWERED)
    yield Probe(f"{service}.ReportProgress", "product", [report], ahead)


def _exporting(things: Things) -> Iterator[Probe]:
    service, theirs = "prw.changes.v1.ExportService", things.export
    epoch, lease = 1, theirs.lease_id
    get = exports.GetSnapshotRequest(export_id=theirs.export_id)
    read = exports.ReadObjectRequest(export_id=theirs.export_id, name=theirs.objects[0].name)
    create = exports.CreateSnapshotRequest(client_token=EXPORT_TOKEN)
    renew = exports.RenewLeaseRequest(history_epoch=epoch, lease_id=lease)
    release = exports.ReleaseLeaseRequest(history_epoch=epoch, lease_id=lease)
    page = changes.ListChangesRequest(history_epoch=epoch, lease_id=lease)
    yield Probe(f"{service}.GetSnapshot", "product", [get])
    yield Probe(f"{service}.ReadObject", "product", [read])
    yield Probe(f"{service}.RenewLease", "product", [renew])
    yield Probe("prw.changes.v1.ChangeService.ListChanges", "product", [page])
    # The first tenant's token gives this one an export of its own.
    yield Probe(f"{service}.CreateSnapshot", "product", [create], ANSWERED)
    digest = exports.GetDigestRequest(history_epoch=epoch)
    yield Probe(f"{service}.GetDigest", "product", [digest], ANSWERED)
    # Ending what is not there, or is another's, changes nothing.
    yield Probe(f"{service}.ReleaseLease", "product", [release], ANSWERED)


def _browsing(things: Things) -> Iterator[Probe]:
    service = "prw.catalog.v1.CatalogService"
    one = catalog.GetItemRequest(item_id=things.item_id)
    yield Probe(f"{service}.ListItems", "public", [catalog.ListItemsRequest()], ANSWERED)
    yield Probe(f"{service}.GetItem", "public", [one])
    yield Probe(f"{service}.ListMerchants", "public", [catalog.ListMerchantsRequest()], ANSWERED)
