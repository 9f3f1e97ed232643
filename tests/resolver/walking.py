"""A worker over a database of the test's own, and captures for it to walk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from prw_base.canonical import canonical_json, sha256_hex
from prw_base.principal import Kind, Principal
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, Source
from prw_resolver.extraction.model import Captured
from prw_resolver.extraction.pool import ReaderPool
from prw_resolver.identity.retraction import Absence
from prw_resolver.intake import service as intake
from prw_resolver.intake import store as intake_store
from prw_resolver.intake.model import Submission, SubmittedPart
from prw_resolver.intake.service import Intake
from prw_resolver.jobs import service as jobs
from prw_resolver.jobs.model import ResolveJob, Stage
from prw_resolver.jobs.queue import JobQueue
from prw_resolver.objects.local import LocalObjectStore
from prw_resolver.objects.model import ObjectKey, ObjectMeta
from prw_resolver.vocabulary import service as vocabularies
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord
from prw_resolver.worker.model import WorkerSettings
from prw_resolver.worker.parts import WorkerParts
from prw_resolver.worker.service import Worker
from prw_sdk.evidence import AdapterVersion, Presence
from tests.support.tiny_plugin import POINTS

TENANT, OTHER, CATALOG, SOURCE = "ten_synth_a", "ten_synth_b", "main", "src_one"
AT = datetime(2024, 10, 10, 3, 31, tzinfo=UTC)
FAST = WorkerSettings(
    poll=timedelta(milliseconds=20),
    heartbeat=timedelta(milliseconds=200),
    lost_after=timedelta(seconds=2),
    repair_every=timedelta(milliseconds=200),
    repair_age=timedelta(0),
    retry_base=timedelta(milliseconds=10),
    drain_limit=timedelta(seconds=10),
)
SSD = {
    "core:title": "Kestrel KX990 1TB NVMe SSD",
    "core:brand": "Kestrel",
    "core:mpn": "KX990-1T0",
    "core:gtin": "9521100100014",
    "offer:price": "89.90",
    "offer:currency": "USD",
}


def page(*records: dict[str, Any], **how: Any) -> bytes:
    """A page of the tiny adapter."""
    return json.dumps({"records": records, **how}).encode()


def record(
    record_id: str = "r1", seller: str | None = "Orbit Deals", **claims: str
) -> dict[str, Any]:
    """A record of an SSD; claims are added under their key with a colon for a double underscore."""
    more = {key.replace("__", ":"): text for key, text in claims.items()}
    held: dict[str, Any] = {"id": record_id, "claims": SSD | more}
    return held if seller is None else held | {"seller": seller}


@dataclass
class Identified:
    """Stands in for identity: notes every record, and writes the stage's inbox row with the last one."""

    db: Database
    records: list[NormalisedRecord] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)

    async def __call__(
        self, record: NormalisedRecord, vocabulary: Vocabulary, *, job_id: str, last: bool
    ) -> object:
        """Decide a record, or fail as often as was asked."""
        if self.fails:
            raise self.fails.pop()
        self.records.append(record)
        if last:
            await self._mark(Scope(record.tenant_id, record.catalog_id), job_id)
        return "accepted"

    async def absent(self, absence: Absence, vocabulary: Vocabulary, *, job_id: str) -> object:
        """Note an absence."""
        self.absences.append(absence)
        await self._mark(absence.scope, job_id)
        return ()

    async def _mark(self, scope: Scope, job_id: str) -> None:
        capture_id, _, group = job_id.split(":")
        job = ResolveJob(scope.tenant_id, scope.catalog_id, capture_id, int(group))
        async with self.db.transaction(scope.tenant_id) as conn:
            await jobs.mark_done(conn, job, Stage.IDENTIFY)


@dataclass
class Shop:
    """A resolver's rooms up to the worker."""

    dsn: str
    parts: WorkerParts
    identified: Identified

    @property
    def db(self) -> Database:
        """The database of the server's role."""
        return self.parts.db

    async def put(self, body: bytes, tenant: str = TENANT) -> str:
        """Store bytes as an artifact."""
        meta = ObjectMeta(sha256_hex(body), len(body), "application/json")
        await self.parts.objects.put_if_absent(ObjectKey(tenant, meta.sha256), meta, _chunks(body))
        async with self.db.transaction(tenant) as conn:
            await intake_store.add_artifact(conn, tenant, meta)
        return meta.sha256

    async def submit(self, body: bytes, tenant: str = TENANT, **other: Any) -> str:
        """Submit a capture of one page; its id."""
        sha256 = await self.put(body, tenant)
        submission = replace(_submission(tenant, sha256, len(body)), **other)
        settings = Intake(self.db, self.parts.objects, 1 << 20)
        return (await intake.submit(settings, _collector(tenant), submission)).capture_id

    async def captured(self, capture_id: str, attempt_group: int = 0) -> Captured:
        """A capture as the worker hands it to extraction."""
        found = await intake.load_capture(self.db, self.parts.objects, TENANT, capture_id)
        assert found is not None
        return Captured(
            TENANT, CATALOG, capture_id, found.generation, found.evidence, attempt_group
        )

    async def done(self, *capture_ids: str) -> bool:
        """Whether every stage of the captures is done."""
        async with self.db.transaction(TENANT) as conn:
            states = await jobs.stage_states(conn, capture_ids)
        return all(states[name].done == frozenset(Stage) for name in capture_ids)

    async def dead(self) -> list[str]:
        """The codes of the open dead letters."""
        return [letter.code for letter in await jobs.dead_letters(self.db, TENANT)]

    async def is_dead(self) -> bool:
        """Whether there is a dead letter."""
        return bool(await self.dead())


@asynccontextmanager
async def shop(
    dsn: str,
    state: Path,
    settings: WorkerSettings = FAST,
    read_limit: timedelta = timedelta(seconds=20),
) -> AsyncIterator[Shop]:
    """Rooms with two tenants, each with a catalogue, a source and the packaged vocabulary."""
    async with AsyncExitStack() as stack:
        db = await stack.enter_async_context(await Database.open(dsn, max_size=8))
        for tenant in (TENANT, OTHER):
            await access.put_tenant(db, tenant, tenant)
            await access.put_catalog(db, tenant, CATALOG, "")
            await access.put_source(db, Source(tenant, CATALOG, SOURCE, SOURCE, True, {}))
            await vocabularies.publish(db, tenant, CATALOG)
        readers = await stack.enter_async_context(ReaderPool(1, read_limit, POINTS))
        identified = Identified(db)
        objects = LocalObjectStore.open(state / "objects")
        parts = WorkerParts(db, objects, readers, identified, identified.absent, settings=settings)
        yield Shop(dsn, parts, identified)


@asynccontextmanager
async def working(shop: Shop) -> AsyncIterator[Worker]:
    """A worker that runs until the block ends."""
    async with JobQueue.open(shop.dsn) as queue:
        worker = Worker(shop.parts, queue)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await running


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _collector(tenant: str) -> Principal:
    return Principal(
        Kind.MACHINE,
        "ci_one",
        tenant,
        CATALOG,
        "client",
        "cw_one",
        "ci_one",
        frozenset({SOURCE}),
        frozenset(COLLECTOR_SCOPES),
    )


def _submission(tenant: str, sha256: str, size: int) -> Submission:
    config = {"locale": "en-US", "currency": "USD"}
    part = SubmittedPart(
        role="page",
        sha256=sha256,
        size=size,
        media_type="application/json",
        charset_declared=None,
        charset_used="utf-8",
        url_asked="https://shop.example/p/1",
        url_reached="https://shop.example/p/1",
        http_status=200,
        headers=(),
        fetched_at=AT,
    )
    return Submission(
        source_id=SOURCE,
        native_record_id=f"https://shop.example/p/{sha256[:12]}",
        captured_at=AT,
        adapter=AdapterVersion("tiny", "1.0.0"),
        config=config,
        config_digest=sha256_hex(canonical_json(config)),
        parts=(part,),
        presence=Presence.PRESENT,
    )


def attributes(records: Iterable[NormalisedRecord]) -> list[dict[str, str]]:
    """Every record's values by attribute."""
    return [{value.attribute: value.value for value in held.values} for held in records]


Rows = psycopg.Connection[dict[str, Any]]
TABLES = ("extraction", "record", "normalisation", "normalised_record", "job_inbox")


def counts(superuser: Rows) -> dict[str, int]:
    """How many rows each table of the stages has."""
    found = {}
    for table in TABLES:
        [row] = superuser.execute(f"select count(*) as n from {table}").fetchall()  # noqa: S608  # names of ours
        found[table] = row["n"]
    return found


def queue_rows(superuser: Rows) -> list[str]:
    """The states of the queue's rows."""
    rows = superuser.execute("select status::text from procrastinate_jobs").fetchall()
    return [row["status"] for row in rows]


WALKED_ONCE = {
    "extraction": 1,
    "record": 2,
    "normalisation": 1,
    "normalised_record": 2,
    "job_inbox": 3,
}
TWO = page(record("r1"), record("r2"))
