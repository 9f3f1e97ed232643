"""What an export says of itself, how a rebuild goes, and its pure rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json, sha256_hex
from prw_base.scope import Scope

SCHEMA_VERSION = 1
"""The version of the objects' columns that this program loads."""


class ExportStatus(StrEnum):
    """How an export stands."""

    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class Phase(StrEnum):
    """How far a rebuild is."""

    EXPORTING = "exporting"
    LOADING = "loading"
    FINISHING = "finishing"
    CATCHING_UP = "catching_up"
    SERVED = "served"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ExportObject:
    """One object of an export; ``bytes`` and ``sha256`` are of what is stored. ``kind`` is also the table's name."""

    name: str
    kind: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """An export as the resolver tells of it; ``position`` is W, whose state it holds."""

    export_id: str
    scope: Scope
    history_epoch: int
    position: int
    schema_version: int
    status: ExportStatus
    lease_id: str
    lease_seconds: float
    objects: tuple[ExportObject, ...]
    digest: str
    code: str
    expected: int

    @property
    def rows(self) -> int:
        """The rows of all objects that are there."""
        return sum(one.rows for one in self.objects)


@dataclass(frozen=True, slots=True)
class StateDigest:
    """How many aggregates of a type there are, and their digest (docs/contract.md)."""

    aggregates: int
    digest: str


def differing(ours: Mapping[str, StateDigest], theirs: Mapping[str, StateDigest]) -> list[str]:
    """The types of aggregates whose accepted state is not the same on both sides."""
    return sorted(kind for kind in {*ours, *theirs} if ours.get(kind) != theirs.get(kind))


@dataclass(frozen=True, slots=True)
class Progress:
    """How a rebuild goes: ``done`` of ``total`` in the unit of its phase (rows, or positions)."""

    phase: Phase
    done: int
    total: int


Watch = Callable[[Progress], None]
"""Is told of progress, often."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild came to: the generation that serves now, and the position (H) that was cut over at."""

    generation: int
    history_epoch: int
    export_id: str
    exported_at: int
    served_at: int
    rows: int


def check_manifest(manifest: Manifest, scope: Scope) -> None:
    """Refuse an export that cannot be loaded here. Raises PrwError."""
    if manifest.scope != scope:
        message = "the export is of another catalogue than is projected here"
        raise PrwError(Code.TENANT_SCOPE_DENIED, message)
    if manifest.schema_version != SCHEMA_VERSION:
        message = f"the export has schema version {manifest.schema_version}, this program knows {SCHEMA_VERSION}"
        raise PrwError(Code.VALIDATION_FAILED, message, field="schema_version")
    if manifest.status is ExportStatus.FAILED:
        code = Code(manifest.code) if manifest.code in Code.__members__ else Code.UNAVAILABLE
        raise PrwError(code, f"the resolver gave the export up: {manifest.code}")
    if manifest.status is ExportStatus.READY and _digest(manifest) != manifest.digest:
        raise PrwError(Code.DIGEST_MISMATCH, "the manifest does not hash to its digest")


def _digest(manifest: Manifest) -> str:
    objects = sorted(manifest.objects, key=lambda one: one.name)
    said = {
        "tenant_id": manifest.scope.tenant_id,
        "catalog_id": manifest.scope.catalog_id,
        "history_epoch": manifest.history_epoch,
        "position": manifest.position,
        "schema_version": manifest.schema_version,
        "objects": [[one.name, one.kind, one.rows, one.bytes, one.sha256] for one in objects],
    }
    return sha256_hex(canonical_json(said))


def unfit(reason: str) -> PrwError:
    """Rows that no generation may hold."""
    message = f"the export does not fit this program's tables: {reason}"
    return PrwError(Code.VALIDATION_FAILED, message, field="objects")


def unresolved(position: int, reason: str) -> PrwError:
    """What holds a rebuild below the position that it must reach; nothing is ever skipped."""
    message = f"the rebuild stands at {position}: {reason}"
    return PrwError(Code.VALIDATION_FAILED, message, field="change")
