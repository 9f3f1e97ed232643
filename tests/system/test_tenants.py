"""Two tenants in one resolver and one product database: neither gets at anything of the other's by any method."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from prw.changes.v1 import export_service_pb2 as exports
from prw.changes.v1.export_service_pb2_grpc import ExportServiceStub
from prw.collector.v1 import evidence_pb2 as evidence
from prw.errors import Code
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
from tests.system.probes import ANSWERED, COMING, EXPORT_TOKEN, OTHER, THEIRS, Probe, Things, probes

UNTRUSTED = "http://bazaarline.example/dp/B0OX32T"
"""A page whose listing is a case wherever it comes from."""


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
        export=await _exported(walk),
    )


async def _exported(walk: Walk) -> exports.Manifest:
    """A whole export of the first tenant's."""
    token = token_file(walk, "product", SCOPE.tenant_id).read_text("utf-8")
    async with open_channel(walk.resolver.told["address"], token) as channel:
        stub: Any = ExportServiceStub(channel)

        async def ready() -> exports.Manifest | None:
            asked = exports.CreateSnapshotRequest(client_token=EXPORT_TOKEN)
            manifest: exports.Manifest = (await stub.CreateSnapshot(asked)).manifest
            return manifest if manifest.status == exports.EXPORT_STATUS_READY else None

        found = await until(ready)
        assert found is not None
        return found


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
