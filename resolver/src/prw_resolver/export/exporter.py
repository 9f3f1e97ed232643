"""Writes an export: the accepted state as of one position, piece by piece.

The history of facts is append-only and each revision has its position, so that the state as of a position is read
exactly at any later time. No snapshot is held open meanwhile: under one, the dead versions of the stream's cursor
would pile up and slow every commit (ADR-004 reads it in one transaction; this gives the same rows).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from prw_base.faults import fault
from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_resolver.export import store
from prw_resolver.export.model import (
    Export,
    ExportStatus,
    ObjectKind,
    Pinned,
    StoredObject,
    manifest_digest,
)
from prw_resolver.export.objects import Folder, ObjectWriter
from prw_resolver.stream.model import AggregateType, Stream
from prw_resolver.stream.retention import Retention

PIECE = 50_000
"""Aggregates of one object, so that each statement is short and each object is soon sent again."""

STATEMENT_TIMEOUT = timedelta(minutes=5)
_ALL = ""

_BLOCKS: dict[AggregateType, tuple[tuple[ObjectKind, str], ...]] = {
    AggregateType.CATALOG_ITEM: ((ObjectKind.ITEM_REVISION, "item_revision"),),
    AggregateType.LISTING_MAPPING: ((ObjectKind.MAPPING_REVISION, "mapping_revision"),),
    AggregateType.MERCHANT: ((ObjectKind.MERCHANT, "merchant"),),
    AggregateType.INVENTORY_OBSERVATION: ((ObjectKind.INVENTORY, "inventory"),),
    AggregateType.RELEASE: (
        (ObjectKind.PUBLIC_ITEM, "public_item"),
        (ObjectKind.RELEASED_LISTING, "released_listing"),
        (ObjectKind.MAPPING_REVISION, "released_mapping_revision"),
    ),
}
"""What is written of each type of aggregate, beside its revisions."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """The rows of one block for the ids after one and through another (None: to the end)."""

    kind: ObjectKind
    block: str
    aggregate_type: str
    after: str
    through: str | None


class Exporter:
    """Writes the objects of one export and lets it be ready, or fails."""

    def __init__(
        self, database: Database, retention: Retention, folder: Folder, piece: int = PIECE
    ) -> None:
        self._database = database
        self._retention = retention
        self._folder = folder
        self._piece = piece

    async def write(self, export: Export, stream: Stream, position: int) -> None:
        """Write all objects, then, if the lease lasts and the epoch is the same, let the export be ready."""
        pinned = Pinned(stream, position)
        fault("export.before_objects")
        async with self._transaction(stream) as conn:
            ranges = await store.ranges(conn, pinned, self._piece)
            expected = sum(one.aggregates for one in ranges.values())
            await store.begin_export(conn, pinned, export.export_id, expected)
        self._folder.make(export.export_id)
        made = [
            await self._write_piece(pinned, export, number, piece)
            for number, piece in enumerate(_pieces(ranges), 1)
        ]
        await self._finish(pinned, export, made)

    async def _write_piece(
        self, pinned: Pinned, export: Export, number: int, piece: _Piece
    ) -> StoredObject:
        name = f"{piece.kind.value}-{number:05}"
        made = await self._write_object(pinned, export.export_id, name, piece)
        fault("export.after_object")
        await self._retention.renew(pinned.stream, export.lease_id, export.principal)
        async with self._transaction(pinned.stream) as conn:
            await store.put_object(conn, _scope(pinned), export.export_id, made)
        return made

    async def _write_object(
        self, pinned: Pinned, export_id: str, name: str, piece: _Piece
    ) -> StoredObject:
        writer = self._folder.writer(export_id, name)
        try:
            rows = await self._copy(pinned, piece, writer)
            sha256 = await writer.finish()
        except BaseException:
            writer.abandon()
            raise
        return StoredObject(name, piece.kind.value, rows, writer.bytes, sha256)

    async def _copy(self, pinned: Pinned, piece: _Piece, writer: ObjectWriter) -> int:
        """Copy the rows out; returns how many: each is a message of its own, and the trailer is the last."""
        messages = 0
        async with self._transaction(pinned.stream) as conn:
            pieces = store.copy(
                conn, pinned, piece.block, piece.aggregate_type, piece.after, piece.through
            )
            async with aclosing(pieces):
                async for rows in pieces:
                    messages += rows.messages
                    await writer.add(rows.data)
        return messages - 1

    async def _finish(self, pinned: Pinned, export: Export, made: Sequence[StoredObject]) -> None:
        """Move the pin to the position: from here on only what comes after it is needed."""
        fault("export.before_ready")
        stream, position = pinned.stream, pinned.position
        await self._retention.renew(stream, export.lease_id, export.principal, pin=position)
        digest = manifest_digest(pinned, sorted(made, key=lambda one: one.name))
        async with self._transaction(stream) as conn:
            await store.end_export(
                conn, _scope(pinned), export.export_id, ExportStatus.READY, digest=digest
            )

    def _transaction(self, stream: Stream) -> AbstractAsyncContextManager[Connection]:
        return self._database.transaction(stream.tenant_id, STATEMENT_TIMEOUT)


def _pieces(ranges: dict[str, store.Ranges]) -> Iterator[_Piece]:
    for name, found in ranges.items():
        kind = AggregateType(name)
        blocks = ((ObjectKind.APPLIED_REVISION, "applied_revision"), *_BLOCKS[kind])
        for after, through in pairwise([_ALL, *found.cuts, None]):
            for object_kind, block in blocks:
                yield _Piece(object_kind, block, name, after or _ALL, through)
    if AggregateType.RELEASE in ranges:
        mapping = ObjectKind.RELEASED_MAPPING
        yield _Piece(mapping, mapping.value, AggregateType.RELEASE.value, _ALL, None)


def _scope(pinned: Pinned) -> Scope:
    return Scope(pinned.stream.tenant_id, pinned.stream.catalog_id)
