"""Two tenants in one resolver and one product database: neither gets at anything of the other's by any method."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from google.protobuf.message import Message
from psycopg import sql

from prw.catalog.v1 import catalog_service_pb2 as catalog
from prw.changes.v1 import change_service_pb2 as changes
from prw.collector.v1 import artifact_service_pb2 as artifacts
from prw.collector.v1 import capture_service_pb2 as captures
from prw.collector.v1 import checkpoint_service_pb2 as checkpoints
from prw.collector.v1 import collector_service_pb2 as collectors
from prw.collector.v1 import evidence_pb2 as evidence
from prw.errors import Code
from prw.operator.v1 import review_service_pb2 as review
from prw_base.client import open_channel
from prw_base.files import write_private
from prw_base.principal import Role
from prw_base.server.database import Database
from prw_base.server.postgres import Cluster
from prw_examples.demo.layout import COLLECTOR, PERSON, PRODUCT, SCOPE, WORKER
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, PRODUCT_SCOPES, ClientGrant, Source
from prw_resolver.bootstrap import build_issuer
from prw_resolver.settings import ResolverSettings
from prw_resolver.vocabulary import service as vocabulary
from prw_sdk.spool.folder import Spool
from prw_sdk.uplink.messages import capture_message
from tests.resolver.collecting import Caller, digest
from tests.support.contract import Answer, ask, methods
from tests.support.programs import Program
from tests.support.waiting import until
from tests.support.walk import Walk, walking

OTHER, THEIRS = "ten_other", "src_theirs"
"""The second tenant; its catalogue, worker, instance, consumer and person are named as the first one's."""

UNTRUSTED = "http://bazaarline.example/dp/B0OX32T"
"""A page whose listing is a case wherever it comes from."""

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
    yield Probe(f"{service}.ReportProgress", "product", [report], ahead)
    yield Probe(f"{service}.GetEpoch", "product", [epoch], ANSWERED)
    yield Probe(f"{service}.RegisterConsumer", "product", [register], ANSWERED)
    yield Probe(f"{service}.StreamChanges", "product", [stream], ANSWERED)
    yield Probe(f"{service}.ListChanges", "product", [page], ANSWERED)
    yield Probe(f"{service}.ReportProgress", "product", [report], ahead)


def _browsing(things: Things) -> Iterator[Probe]:
    service = "prw.catalog.v1.CatalogService"
    one = catalog.GetItemRequest(item_id=things.item_id)
    yield Probe(f"{service}.ListItems", "public", [catalog.ListItemsRequest()], ANSWERED)
    yield Probe(f"{service}.GetItem", "public", [one])
    yield Probe(f"{service}.ListMerchants", "public", [catalog.ListMerchantsRequest()], ANSWERED)


async def test_no_method_gives_or_changes_what_is_another_tenants(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Each method refuses, or answers with the caller's own; the first tenant itself is answered, so each was fair."""
    async with walking(cluster, tmp_path / "walk") as walk:
        await walk.collect_all("src_lumen", "src_bazaarline")
        await walk.at_rest()
        await found_other(walk)
        async with other_product(walk) as product:
            things = await lay_out(walk)
            secrets, before = known_to(walk, SCOPE.tenant_id), contents(walk)
            asked = list(probes(things))
            assert {probe.method for probe in asked} == set(methods())
            theirs = [await put(walk, probe, product, OTHER) for probe in asked]
            assert contents(walk) == before
            for probe, answer in zip(asked, theirs, strict=True):
                assert_gives_nothing(probe, answer, secrets)
            ours = [await put(walk, probe, walk.product, SCOPE.tenant_id) for probe in asked]
            answered = {p.method for p, got in zip(asked, ours, strict=True) if not refused(got)}
            assert answered == set(methods()), [got for got in ours if refused(got)]


def refused(answer: Answer) -> bool:
    """Whether a call was refused."""
    return isinstance(answer, Code)


def assert_gives_nothing(probe: Probe, answer: Answer, secrets: frozenset[bytes]) -> None:
    """A refusal that says why, or an answer in which nothing of the first tenant's stands."""
    if isinstance(answer, Code):
        assert answer in probe.refusals, (probe.method, answer)
        return
    assert probe.refusals == ANSWERED, (probe.method, answer)
    given = answer.SerializeToString()
    assert not [secret for secret in secrets if secret in given], (probe.method, answer)


async def put(walk: Walk, probe: Probe, product: Program, tenant: str) -> Answer:
    """Put a probe as that tenant's caller; the catalogue is asked of that product."""
    public = probe.caller == "public"
    address = (product if public else walk.resolver).told["address"]
    token = None if public else token_file(walk, probe.caller, tenant).read_text("utf-8")
    async with open_channel(address, token) as channel:
        return await ask(channel, methods()[probe.method], probe.requests)


def token_file(walk: Walk, caller: str, tenant: str) -> Path:
    """Where a caller's token is."""
    return walk.layout.token(caller if tenant == SCOPE.tenant_id else f"{tenant}-{caller}")


# The second tenant


async def found_other(walk: Walk) -> None:
    """Give the second tenant a catalogue, a source that may not introduce items, and its callers."""
    state = ResolverSettings(state_folder=walk.layout.root)
    async with await Database.open(walk.resolver_dsns["resolver_app"], max_size=2) as db:
        await access.put_catalog(db, OTHER, SCOPE.catalog_id, "Other")
        source = Source(OTHER, SCOPE.catalog_id, THEIRS, "Theirs", False, {"locale": "en_US"})
        await access.put_source(db, source)
        await vocabulary.publish(db, OTHER, SCOPE.catalog_id)
        issuer = build_issuer(state, db)
        collector = ClientGrant(
            OTHER, SCOPE.catalog_id, COLLECTOR, COLLECTOR_SCOPES, WORKER, (THEIRS,)
        )
        product = ClientGrant(OTHER, SCOPE.catalog_id, PRODUCT, PRODUCT_SCOPES)
        made = {
            "collector": await access.provision_client(issuer, collector),
            "product": await access.provision_client(issuer, product),
            "operator": await access.provision_operator(
                issuer, OTHER, SCOPE.catalog_id, PERSON, Role.OPERATOR_ADMIN
            ),
        }
    for caller, provisioned in made.items():
        write_private(token_file(walk, caller, OTHER), provisioned.token.encode())


@asynccontextmanager
async def other_product(walk: Walk) -> AsyncIterator[Program]:
    """The second tenant's product, over the same database; it does not follow, so that nothing moves."""
    command = (
        *("product", "--tenant", OTHER, "--catalog", SCOPE.catalog_id, "serve"),
        *("--http", "127.0.0.1:0", "--address", "127.0.0.1:0", "--no-follow"),
    )
    program = Program("other-product", command, walk.environment, walk.layout.logs)
    try:
        assert await program.start()
        yield program
    finally:
        await program.kill()


async def lay_out(walk: Walk) -> Things:
    """What the first tenant has of each kind, an open upload included; and a case of the second's own."""
    capture, body = _captured(walk)
    async with _collector(walk, SCOPE.tenant_id) as ours:
        upload = await ours.declare(COMING, capture.source_id)
    async with _collector(walk, OTHER) as theirs:
        await _submit_own(theirs, capture, body)
    own_case = await until(lambda: _row(walk, _CASE, OTHER))
    case, receipt, item = (_row(walk, query, SCOPE.tenant_id) for query in (_CASE, _RECEIPT, _ITEM))
    return Things(
        capture=capture,
        receipt_id=receipt[0],
        upload_id=upload.upload_id,
        case_id=case[0],
        case_revision=case[1],
        item_id=item[0],
        own_case_id=own_case[0],
    )


@asynccontextmanager
async def _collector(walk: Walk, tenant: str) -> AsyncIterator[Caller]:
    token = token_file(walk, "collector", tenant).read_text("utf-8")
    async with open_channel(walk.resolver.told["address"], token) as channel:
        yield Caller(channel)


def _captured(walk: Walk) -> tuple[evidence.Capture, bytes]:
    spool = Spool.existing(walk.layout.spool)
    (kept,) = [one for one in spool.ledger.captures() if one.key.native_id == UNTRUSTED]
    message = capture_message(json.loads(kept.body))
    body = spool.blobs.get(message.parts[0].sha256)
    spool.close()
    return message, body


async def _submit_own(theirs: Caller, capture: evidence.Capture, body: bytes) -> None:
    own = evidence.Capture()
    own.CopyFrom(capture)
    body += b"<!-- theirs -->"
    own.source_id, own.native_record_id = THEIRS, f"{UNTRUSTED}?theirs"
    own.parts[0].sha256, own.parts[0].bytes = await theirs.put(body, THEIRS), len(body)
    await theirs.submit(own)


_CASE = (
    "select case_id, revision from resolver.review_case"
    " where tenant_id = %s and reason = 'untrusted_new_key' and status = 'awaiting_human'"
)
_RECEIPT = "select receipt_id from resolver.receipt where tenant_id = %s"
_ITEM = "select item_id from resolver.catalog_item where tenant_id = %s"
_TEXTS = """
select c.table_schema, c.table_name, c.column_name
  from information_schema.columns c
  join information_schema.columns t
    on t.table_schema = c.table_schema and t.table_name = c.table_name and t.column_name = 'tenant_id'
  join information_schema.tables b
    on b.table_schema = c.table_schema and b.table_name = c.table_name and b.table_type = 'BASE TABLE'
 where c.table_schema = 'resolver' and c.data_type = 'text'
"""
_TABLES = """
select t.table_schema, t.table_name
  from information_schema.tables t
  join information_schema.columns c
    on c.table_schema = t.table_schema and c.table_name = t.table_name and c.column_name = 'tenant_id'
 where t.table_type = 'BASE TABLE'
"""


def _row(walk: Walk, query: str, tenant: str) -> Any:
    with psycopg.connect(walk.resolver_dsns["superuser"]) as conn:
        return conn.execute(query.encode(), (tenant,)).fetchone()


def known_to(walk: Walk, tenant: str) -> frozenset[bytes]:
    """Every id that the resolver has made for a tenant, in whatever column, and the digests of its bytes."""
    found = set[str]()
    with psycopg.connect(walk.resolver_dsns["superuser"]) as conn:
        for schema, table, column in conn.execute(_TEXTS.encode()).fetchall():
            query = sql.SQL(
                "select distinct {column} from {table} where tenant_id = %s and ({column} ~ {id} or {digest})"
            ).format(
                column=sql.Identifier(column),
                table=sql.Identifier(schema, table),
                id=sql.Literal("^[a-z]+_[0-9a-f]{32}$"),
                digest=sql.Literal(column == "sha256"),
            )
            found.update(row[0] for row in conn.execute(query, (tenant,)))
    kinds = {one.partition("_")[0] for one in found if "_" in one}
    assert len(kinds) >= 8, kinds
    return frozenset(one.encode() for one in found)


def contents(walk: Walk) -> dict[str, str]:
    """A digest of each table's rows of the first tenant, in both databases."""
    return {
        f"{schema}.{table}": digest(repr(sorted(rows)).encode())
        for dsns in (walk.resolver_dsns, walk.product_dsns)
        for schema, table, rows in _all_rows(dsns["superuser"])
    }


def _all_rows(dsn: str) -> Iterator[tuple[str, str, list[str]]]:
    with psycopg.connect(dsn) as conn:
        for schema, table in conn.execute(_TABLES.encode()).fetchall():
            query = sql.SQL("select row_to_json(t)::text from {} t where tenant_id = %s").format(
                sql.Identifier(schema, table)
            )
            rows = [row[0] for row in conn.execute(query, (SCOPE.tenant_id,))]
            yield schema, table, rows
