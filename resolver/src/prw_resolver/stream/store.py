"""The SQL of the stream's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.stream.model import Committed, Page, StoredChange, Stream

_SQL = Statements("prw_resolver.stream")


@dataclass(frozen=True, slots=True)
class Consumer:
    """A registered consumer of a stream."""

    principal: str
    status: str
    reported_position: int
    reported_at: datetime | None


def _key(stream: Stream) -> dict[str, object]:
    return {
        "tenant_id": stream.tenant_id,
        "catalog_id": stream.catalog_id,
        "history_epoch": stream.history_epoch,
    }


async def open_stream(conn: Connection, stream: Stream) -> None:
    """Make the stream's rows where they are not there yet."""
    await _SQL.rows(conn, "open", **_key(stream))


async def commit(
    conn: Connection, stream: Stream, commands: Sequence[Mapping[str, object]]
) -> list[Committed]:
    """Run a group of commands; the caller's transaction makes them durable."""
    rows = await _SQL.rows(conn, "commit", **_key(stream), commands=Jsonb(list(commands)))
    return [Committed(**answer) for answer in rows[0]["answers"]]


async def find_command(
    conn: Connection, stream: Stream, command_id: str
) -> tuple[Committed, str] | None:
    """The former answer to a command with its digest, or None."""
    rows = await _SQL.rows(conn, "command", **_key(stream), command_id=command_id)
    return (Committed(**rows[0]["answer"], replayed=True), rows[0]["digest"]) if rows else None


async def read_page(conn: Connection, stream: Stream, after: int, page_size: int) -> Page | None:
    """One page of consecutive changes after a position; None where there is no such stream."""
    rows = await _SQL.rows(conn, "page", **_key(stream), after=after, page_size=page_size)
    if not rows:
        return None
    changes = tuple(
        StoredChange(row["position"], row["committed_at"], row["event"])
        for row in rows
        if row["position"] is not None
    )
    return Page(changes, rows[0]["cursor_position"], rows[0]["pruned_through"])


async def lock_retention(conn: Connection, stream: Stream) -> int:
    """Take the retention lock and return how far the stream is pruned; 0 where there is no such stream."""
    rows = await _SQL.rows(conn, "lock_retention", **_key(stream))
    return int(rows[0]["pruned_through"]) if rows else 0


async def register_consumer(
    conn: Connection, stream: Stream, consumer_id: str, principal: str, floor: int
) -> None:
    """Insert a consumer whose progress starts at the floor, unless it is registered already."""
    parameters = {"consumer_id": consumer_id, "principal": principal, "floor": floor}
    await _SQL.rows(conn, "register_consumer", **_key(stream), **parameters)


async def find_consumer(conn: Connection, stream: Stream, consumer_id: str) -> Consumer | None:
    """The consumer, or None."""
    rows = await _SQL.rows(conn, "find_consumer", **_key(stream), consumer_id=consumer_id)
    return Consumer(**rows[0]) if rows else None


async def report_progress(
    conn: Connection, stream: Stream, consumer_id: str, position: int
) -> tuple[int, datetime]:
    """Raise a consumer's reported progress; returns what is on record."""
    rows = await _SQL.rows(
        conn, "report_progress", **_key(stream), consumer_id=consumer_id, position=position
    )
    return rows[0]["reported_position"], rows[0]["reported_at"]


async def system_identifier(conn: Connection) -> str:
    """Which database cluster this is: the same in every copy and restore of it."""
    return str((await _SQL.rows(conn, "system_identifier"))[0]["system_identifier"])


async def mark_published(conn: Connection, most: int) -> int:
    """Mark a batch of changes as published, whosever they are; returns how many. For `resolver_relay` only."""
    return len(await _SQL.rows(conn, "mark_published", most=most))
