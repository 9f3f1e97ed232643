"""The SQL of exports, and the accepted state as of a position."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Piece, Statements
from prw_resolver.export.model import (
    SCHEMA_VERSION,
    Export,
    ExportStatus,
    Pinned,
    StateDigest,
    StoredObject,
)
from prw_resolver.stream.model import Stream

_SQL = Statements("prw_resolver.export")


@dataclass(frozen=True, slots=True)
class Ranges:
    """The aggregates of one type: how many, and the ids at which they are cut into pieces."""

    aggregates: int
    cuts: tuple[str, ...]


async def insert_export(
    conn: Connection, stream: Stream, export_id: str, principal: str, token: str, lease_id: str
) -> bool:
    """Put a new export on record; False where its creator has one of that token."""
    values = {
        "tenant_id": stream.tenant_id,
        "catalog_id": stream.catalog_id,
        "history_epoch": stream.history_epoch,
        "export_id": export_id,
        "principal": principal,
        "client_token": token,
        "lease_id": lease_id,
        "schema_version": SCHEMA_VERSION,
    }
    return await _SQL.row(conn, "insert_export", **values) is not None


async def find_export(
    conn: Connection, scope: Scope, principal: str, *, export_id: str = "", token: str = ""
) -> Export | None:
    """An export of this creator by its id or its token, or None."""
    values = {"principal": principal, "export_id": export_id, "client_token": token}
    row = await _SQL.row(conn, "find_export", **scope.ids, **values)
    return None if row is None else _export(row)


async def list_exports(conn: Connection, scope: Scope) -> list[Export]:
    """All exports of a catalogue that still have files, the newest first."""
    return [_export(row) for row in await _SQL.rows(conn, "list_exports", **scope.ids)]


def _export(row: dict[str, Any]) -> Export:
    return Export(**{**row, "status": ExportStatus(row["status"])})


async def begin_export(conn: Connection, pinned: Pinned, export_id: str, expected: int) -> None:
    """Note the position and how many aggregates there will be."""
    await _SQL.run(conn, "begin_export", **pinned.ids, export_id=export_id, expected=expected)


async def put_object(conn: Connection, scope: Scope, export_id: str, made: StoredObject) -> None:
    """Put an object on record, and say that the exporter lives."""
    values = {
        "name": made.name,
        "kind": made.kind,
        "rows": made.rows,
        "bytes": made.bytes,
        "sha256": made.sha256,
    }
    await _SQL.run(conn, "put_object", **scope.ids, export_id=export_id, **values)
    await _SQL.run(conn, "touch_export", **scope.ids, export_id=export_id)


async def end_export(
    conn: Connection,
    scope: Scope,
    export_id: str,
    status: ExportStatus,
    *,
    digest: str = "",
    code: str = "",
) -> bool:
    """Let a running export be ready or failed; False where it is not running."""
    values = {"export_id": export_id, "status": status.value, "digest": digest, "code": code}
    return await _SQL.run(conn, "end_export", **scope.ids, **values) == 1


async def expire_export(conn: Connection, scope: Scope, export_id: str) -> None:
    """Note that an export's files are gone."""
    await _SQL.run(conn, "expire_export", **scope.ids, export_id=export_id)


async def objects(conn: Connection, scope: Scope, export_id: str) -> tuple[StoredObject, ...]:
    """The objects of an export, by name."""
    rows = await _SQL.rows(conn, "objects", **scope.ids, export_id=export_id)
    return tuple(StoredObject(**row) for row in rows)


async def ranges(conn: Connection, pinned: Pinned, size: int) -> dict[str, Ranges]:
    """The aggregates as of the position by type, in pieces of at most ``size``."""
    rows = await _SQL.rows(conn, "ranges", **pinned.ids, size=size)
    return {row["aggregate_type"]: Ranges(row["aggregates"], tuple(row["cuts"])) for row in rows}


def copy(
    conn: Connection,
    pinned: Pinned,
    block: str,
    aggregate_type: str,
    after: str,
    through: str | None,
) -> AsyncGenerator[Piece, None]:
    """The rows of one piece in PostgreSQL's binary format: ids after one and through the other."""
    values = {"type": aggregate_type, "after": after, "through": through}
    return _SQL.copied(conn, f"copy_{block}", **pinned.ids, **values)


async def digest(conn: Connection, pinned: Pinned) -> list[StateDigest]:
    """The digest of each type of aggregate as of the position."""
    rows = await _SQL.rows(conn, "digest", **pinned.ids)
    return [
        StateDigest(row["aggregate_type"], row["aggregates"], f"{int(row['bits'], 2):064x}")
        for row in rows
    ]
