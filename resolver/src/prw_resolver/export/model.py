"""Exports and their objects (contract, "Payloads": Manifest)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from prw_base.canonical import canonical_json
from prw_resolver.stream.model import Stream

SCHEMA_VERSION = 1
"""Version of the objects' columns, as `export_service.proto` lists them."""

SILENCE = timedelta(seconds=60)
"""An exporter that says nothing for so long is gone, and its export with it."""


class ExportStatus(StrEnum):
    """How an export stands."""

    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    EXPIRED = "expired"


class ObjectKind(StrEnum):
    """Which rows an object holds; each is a block ``copy_<kind>`` of the room's SQL."""

    APPLIED_REVISION = "applied_revision"
    ITEM_REVISION = "item_revision"
    MAPPING_REVISION = "mapping_revision"
    MERCHANT = "merchant"
    INVENTORY = "inventory"
    PUBLIC_ITEM = "public_item"
    RELEASED_LISTING = "released_listing"
    RELEASED_MAPPING = "released_mapping"


@dataclass(frozen=True, slots=True)
class Pinned:
    """The accepted state that is exported: of one stream as of one position."""

    stream: Stream
    position: int

    @property
    def ids(self) -> dict[str, object]:
        """What every statement is given."""
        return {
            "tenant_id": self.stream.tenant_id,
            "catalog_id": self.stream.catalog_id,
            "history_epoch": self.stream.history_epoch,
            "position": self.position,
        }


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object as it is stored: ``bytes`` and ``sha256`` are of the compressed bytes."""

    name: str
    kind: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Export:
    """An export as it is on record; ``position`` is None until it was read."""

    export_id: str
    history_epoch: int
    principal: str
    client_token: str
    lease_id: str
    status: ExportStatus
    position: int | None
    expected: int
    schema_version: int
    digest: str
    code: str
    expires_at: datetime
    lease_lasts: bool
    silent: timedelta


@dataclass(frozen=True, slots=True)
class StateDigest:
    """A digest of all aggregates of a type: the exclusive or of the SHA-256 of each one's canonical text.

    It is of no order and can be kept incrementally; it tells damage, and is no proof against who chooses the content.
    """

    type: str
    aggregates: int
    digest: str


def manifest_digest(pinned: Pinned, objects: Sequence[StoredObject]) -> str:
    """SHA-256 over what the manifest says, so that a damaged one is told from a whole one."""
    said = {
        **pinned.ids,
        "schema_version": SCHEMA_VERSION,
        "objects": [[one.name, one.kind, one.rows, one.bytes, one.sha256] for one in objects],
    }
    return hashlib.sha256(canonical_json(said)).hexdigest()
