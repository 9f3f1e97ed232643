"""A small sound world in both databases, put there as a superuser, so that a test can doctor it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from prw_examples.demo.audit.store import Scope
from prw_examples.street.truth import Outcome, Pair, Reason, TrueListing, Truth

SCOPE = Scope("ten_synth_a", "cat_primary")
Row = Mapping[str, object]
KEY: dict[str, object] = {"tenant_id": SCOPE.tenant_id, "catalog_id": SCOPE.catalog_id}
TENANT: dict[str, object] = {"tenant_id": SCOPE.tenant_id}
WHEN = "2026-10-10T12:00:00+00:00"
DECISIONS = 5

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """A listing of the world: where it stands, and which article it is."""

    name: str
    source: str
    item: str
    mpn: str
    gtin: str
    capacity: str

    @property
    def url(self) -> str:
        """The page."""
        return f"http://{self.source}.example/{self.name}"

    @property
    def body(self) -> bytes:
        """The page's bytes."""
        return f"<html><body><h1>Acme {self.mpn} {self.name}</h1></body></html>".encode()

    @property
    def sha256(self) -> str:
        """The digest of the page's bytes."""
        return hashlib.sha256(self.body).hexdigest()

    @property
    def evidence(self) -> list[dict[str, object]]:
        """What every fact about the listing rests on."""
        return [
            {
                "capture_id": f"cap_{self.name}",
                "part_role": "page",
                "sha256": self.sha256,
                "attribute": "core:title",
                "quote": f"Acme {self.mpn} {self.name}",
                "selector": {"type": "css", "value": "h1"},
                "origin": "adapter",
            }
        ]


OFFERS = (
    Offer("a", "shop", "itm_1", "M1", "00000000000017", "1000"),
    Offer("b", "market", "itm_1", "M1", "00000000000017", "1000"),
    Offer("c", "shop", "itm_2", "M2", "00000000000024", "2000"),
)
TRUTH = Truth(
    pages=(),
    listings=tuple(
        TrueListing(
            one.name, one.source, "", one.url, "Acme", one.name, "", Outcome.ACCEPT, Reason.TRUSTED
        )
        for one in OFFERS
    ),
    same=(Pair("a", "b"),),
    different=(Pair("a", "c", ("capacity_gb",)),),
)


@dataclass(frozen=True, slots=True)
class World:
    """Both databases, as a superuser, and the folder of objects."""

    resolver_dsn: str
    product_dsn: str
    objects: Path

    def doctor(self, database: str, statement: str) -> None:
        """Change something that nobody could change in service."""
        dsn = self.resolver_dsn if database == "resolver" else self.product_dsn
        with doctoring(dsn) as connection:
            connection.execute(sql.SQL(statement))

    def object_of(self, offer: Offer) -> Path:
        """The file that holds a page."""
        digest = offer.sha256
        return self.objects / "evidence" / SCOPE.tenant_id / digest[:2] / digest


@contextmanager
def doctoring(dsn: str) -> Iterator[Connection]:
    """A connection for which no foreign key and no trigger counts."""
    with psycopg.connect(dsn, options="-c session_replication_role=replica") as connection:
        yield connection


def make_world(resolver_dsn: str, product_dsn: str, objects: Path) -> World:
    """A trusted shop and a market that offer the same article, and a second article of the shop."""
    world = World(resolver_dsn, product_dsn, objects)
    with doctoring(resolver_dsn) as connection:
        for source in ("shop", "market"):
            trusted = source == "shop"
            row = {"source_id": source, "name": source, "trusted_to_introduce": trusted}
            _insert(connection, "resolver.source", KEY | row)
        for position, offer in enumerate(OFFERS, 1):
            _capture(connection, offer)
            _reading(connection, offer)
            _accepted(connection, offer, position)
        for offer in (OFFERS[0], OFFERS[2]):
            _item(connection, offer)
        _stream(connection)
    with doctoring(product_dsn) as connection:
        _projection(connection)
    for offer in OFFERS:
        _store(world.object_of(offer), offer)
    return world


def _insert(connection: Connection, table: str, row: Row) -> None:
    held = {name: Jsonb(value) if isinstance(value, dict) else value for name, value in row.items()}
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(*table.split(".")),
        sql.SQL(", ").join(map(sql.Identifier, held)),
        sql.SQL(", ").join(sql.Placeholder() * len(held)),
    )
    connection.execute(statement, list(held.values()))


def _capture(connection: Connection, offer: Offer) -> None:
    capture = {"capture_id": f"cap_{offer.name}"}
    part = {
        "role": "page",
        "sha256": offer.sha256,
        "media_type": "text/html",
        "url_asked": offer.url,
        "url_reached": offer.url,
        "http_status": 200,
        "fetched_at": WHEN,
        "charset_declared": None,
        "charset_used": "utf-8",
    }
    row = {
        "source_id": offer.source,
        "worker_id": "wrk",
        "instance_id": "ins",
        "native_record_id": offer.url,
        "captured_at": WHEN,
        "idempotency_key": offer.name,
        "body_digest": "d",
        "adapter_name": "schemaorg",
        "adapter_version": "1",
        "config": {},
        "presence": "present",
        "identity_generation": 1,
        "document": {"parts": [part]},
    }
    _insert(connection, "resolver.capture", KEY | capture | row)
    receipt = {"receipt_id": f"rct_{offer.name}", "instance_id": "ins", "received_at": WHEN}
    _insert(connection, "resolver.receipt", TENANT | capture | receipt)
    job = {"job_id": f"cap_{offer.name}:identify:0"}
    _insert(connection, "resolver.job_inbox", TENANT | job)


def _reading(connection: Connection, offer: Offer) -> None:
    record = TENANT | {"capture_id": f"cap_{offer.name}", "record_id": "product"}
    read = record | {"attempt_group": 0}
    listing = {"ordinal": 0, "listing_key": offer.url}
    _insert(connection, "resolver.record", read | listing)
    for ordinal, (attribute, value) in enumerate(
        (("core:sku", offer.name), ("offer:seller", "Acme"))
    ):
        claim = {
            "ordinal": ordinal,
            "attribute": attribute,
            "value_as_stated": value,
            "part_role": "page",
            "sha256": offer.sha256,
            "selector": {},
            "origin": "adapter",
            "is_merchant": attribute == "offer:seller",
        }
        _insert(connection, "resolver.claim", read | claim)
    normalised: dict[str, object] = {
        "extraction_group": 0,
        "class_id": "storage_ssd",
        "title": "",
        "url": offer.url,
        "has_merchant": True,
        "keys": Jsonb([]),
        "ambiguous": [],
        "unmapped": [],
        "unreadable": [],
    }
    _insert(connection, "resolver.normalised_record", read | normalised)
    for attribute, (value, unit) in attributes(offer).items():
        row = {
            "catalog_id": SCOPE.catalog_id,
            "attribute_key": attribute,
            "definition_version": 1,
            "value": value,
            "unit": unit,
            "basis": "stated",
            "extraction_group": 0,
            "claim_ordinal": 0,
        }
        _insert(connection, "resolver.normalised_value", read | row)


def attributes(offer: Offer) -> dict[str, tuple[str, str]]:
    """What an offer's page states of its article, normalised."""
    return {
        "core:brand": ("acme", ""),
        "core:mpn": (offer.mpn, ""),
        "core:gtin": (offer.gtin, ""),
        "core:condition": ("new", ""),
        "core:pack_quantity": ("1", ""),
        "storage:capacity": (offer.capacity, "By"),
    }


def _accepted(connection: Connection, offer: Offer, number: int) -> None:
    evidence = Jsonb(offer.evidence)
    decided = {"decision_id": f"dec_{number}", "evidence": evidence}
    by_rule = {"action": "accept", "actor_kind": "rule", "actor_id": "r", "rationale": "r"}
    _insert(connection, "resolver.decision", KEY | decided | by_rule | {"decided_at": WHEN})
    mapping = {
        "listing_id": f"lst_{offer.name}",
        "revision": 1,
        "item_id": offer.item,
        "item_revision": 1,
        "status": "active",
        "source_id": offer.source,
        "listing_key": offer.url,
        "merchant_id": "mer",
        "url": offer.url,
        "title": "",
        "observed_at": WHEN,
    }
    _insert(connection, "resolver.listing_mapping", KEY | decided | mapping)
    _revision(connection, "listing_mapping", f"lst_{offer.name}", offer, decided)
    outcome = {
        "capture_id": f"cap_{offer.name}",
        "record_id": "product",
        "listing_id": f"lst_{offer.name}",
        "outcome": "accepted",
        "actor_kind": "rule",
        "recorded_at": WHEN,
    }
    _insert(connection, "resolver.record_outcome", KEY | outcome)


def _item(connection: Connection, offer: Offer) -> None:
    decided = {"decision_id": "dec_1", "evidence": Jsonb(offer.evidence)}
    item = {"class_id": "storage_ssd", "status": "active", "revision": 1, "title": ""}
    _insert(connection, "resolver.catalog_item", KEY | decided | item | {"item_id": offer.item})
    _revision(connection, "catalog_item", offer.item, offer, decided)
    for attribute, (value, unit) in attributes(offer).items():
        row = {
            "item_id": offer.item,
            "attribute_key": attribute,
            "definition_version": 1,
            "value": value,
            "unit": unit,
            "basis": "stated",
            "decision_id": "dec_1",
        }
        _insert(connection, "resolver.catalog_item_attribute", KEY | row)


def _revision(connection: Connection, kind: str, name: str, offer: Offer, decided: Row) -> None:
    row = {"aggregate_type": kind, "aggregate_id": name, "revision": 1, "state": {}}
    recorded = {**decided, "recorded_at": WHEN, "evidence": Jsonb(offer.evidence)}
    place = {"history_epoch": 1, "position": 1}
    _insert(connection, "resolver.catalog_revision", KEY | row | recorded | place)


def _stream(connection: Connection) -> None:
    epoch = KEY | {"history_epoch": 1}
    _insert(connection, "resolver.stream_cursor", epoch | {"position": DECISIONS})
    for position in range(1, DECISIONS + 1):
        event = {
            "position": position,
            "event_id": f"evt_{position}",
            "aggregate_type": "catalog_item",
            "aggregate_id": "itm_1",
            "revision": position,
            "event": b"e",
            "committed_at": WHEN,
        }
        _insert(connection, "resolver.outbox", epoch | event)


def _projection(connection: Connection) -> None:
    generation = KEY | {"generation": 1, "history_epoch": 1}
    _insert(connection, "product.generation", generation | {"status": "live"})
    _insert(connection, "product.serving_generation", generation)
    _insert(connection, "product.progress", generation | {"position": DECISIONS})
    for position in range(1, DECISIONS + 1):
        event = {"event_id": f"evt_{position}", "digest": bytes(32), "outcome": "applied"}
        _insert(connection, "product.inbox", generation | event | {"position": position})
    for item in ("itm_1", "itm_2"):
        row: dict[str, object] = {
            "item_id": item,
            "release_id": f"rel_{item}",
            "class_id": "storage_ssd",
            "title": "",
            "attributes": {},
            "published_revision": 1,
            "publication_revision": 1,
            "release_position": 1,
        }
        _insert(connection, "projection_1.public_item", KEY | row)
    for offer in OFFERS:
        listing = {
            "listing_id": f"lst_{offer.name}",
            "item_id": offer.item,
            "mapping_revision": 1,
            "merchant_id": "mer",
            "url": offer.url,
            "title": "",
        }
        _insert(connection, "projection_1.public_listing", KEY | listing)


def _store(path: Path, offer: Offer) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"bytes": len(offer.body), "media_type": "text/html", "sha256": offer.sha256}
    path.write_bytes(json.dumps(head).encode() + b"\n" + offer.body)
