"""The SQL of the stream's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from psycopg.types.json import Jsonb

from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.stream.epoch import Standing
from prw_resolver.stream.model import Committed, Page, StoredChange, Stream
from prw_resolver.stream.retained import (
    Consumer,
    ConsumerAct,
    Hold,
    Lease,
    RetentionEvent,
)

_SQL = Statements("prw_resolver.stream")


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


async def register_consumer(
    conn: Connection, stream: Stream, consumer_id: str, principal: str
) -> int:
    """Register a consumer unless it is registered already; returns how far the stream is pruned."""
    whose = {"consumer_id": consumer_id, "principal": principal}
    rows = await _SQL.rows(conn, "register_consumer", **_key(stream), **whose)
    return int(rows[0]["pruned_through"])


async def find_consumer(conn: Connection, stream: Stream, consumer_id: str) -> Consumer | None:
    """The consumer, or None."""
    rows = await _SQL.rows(conn, "find_consumer", **_key(stream), consumer_id=consumer_id)
    return Consumer(**rows[0]) if rows else None


async def report_progress(
    conn: Connection, stream: Stream, consumer_id: str, principal: str, position: int
) -> tuple[int, datetime] | None:
    """Raise a consumer's reported progress; returns what is on record, None where it may not report."""
    values = {"consumer_id": consumer_id, "principal": principal, "position": position}
    rows = await _SQL.rows(conn, "report_progress", **_key(stream), **values)
    found = rows[0]
    return (
        None if found["reported_at"] is None else (found["reported_position"], found["reported_at"])
    )


async def move_consumer(
    conn: Connection, stream: Stream, consumer_id: str, act: ConsumerAct, actor: str, reason: str
) -> bool:
    """Pause, resume or retire a consumer; False where there is none of that name."""
    values = {"consumer_id": consumer_id, "act": act.value, "actor": actor, "reason": reason}
    return bool((await _SQL.rows(conn, "move_consumer", **_key(stream), **values))[0]["found"])


async def consumers(conn: Connection, stream: Stream) -> list[Consumer]:
    """Every consumer of the stream, by name."""
    return [Consumer(**row) for row in await _SQL.rows(conn, "consumers", **_key(stream))]


async def retention_events(conn: Connection, stream: Stream, most: int) -> list[RetentionEvent]:
    """The last acts on what holds retention, newest first."""
    rows = await _SQL.rows(conn, "retention_events", **_key(stream), most=most)
    return [RetentionEvent(**row) for row in rows]


async def grant_lease(
    conn: Connection, stream: Stream, lease_id: str, principal: str, lifetime: timedelta
) -> Lease:
    """A lease pinned at the floor."""
    values = {"lease_id": lease_id, "principal": principal, "lifetime": lifetime}
    return Lease(lease_id, **(await _SQL.rows(conn, "grant_lease", **_key(stream), **values))[0])


async def renew_lease(
    conn: Connection, stream: Stream, lease_id: str, principal: str, lifetime: timedelta, pin: int
) -> Lease:
    """Renew a lease and move its pin forward."""
    values = {"lease_id": lease_id, "principal": principal, "lifetime": lifetime, "pin": pin}
    return Lease(lease_id, **(await _SQL.rows(conn, "renew_lease", **_key(stream), **values))[0])


async def release_lease(conn: Connection, stream: Stream, lease_id: str, principal: str) -> None:
    """End a lease."""
    values = {"lease_id": lease_id, "principal": principal}
    await _SQL.rows(conn, "release_lease", **_key(stream), **values)


async def find_lease(
    conn: Connection, stream: Stream, lease_id: str, principal: str
) -> tuple[Lease, bool] | None:
    """The principal's lease and whether it lasts, or None."""
    values = {"lease_id": lease_id, "principal": principal}
    row = await _SQL.row(conn, "find_lease", **_key(stream), **values)
    return None if row is None else (Lease(lease_id, row["pin"], row["expires_at"]), row["lasts"])


async def prune(conn: Connection, stream: Stream, age: timedelta, most: int) -> int:
    """Prune a batch within all bounds; returns how many changes went. For `resolver_pruner` only."""
    return int((await _SQL.rows(conn, "prune", **_key(stream), age=age, most=most))[0]["pruned"])


async def holds(conn: Connection, stream: Stream) -> list[Hold]:
    """Who holds back what, the furthest back first."""
    return [Hold(**row) for row in await _SQL.rows(conn, "holds", **_key(stream))]


async def streams_of_epoch(conn: Connection, history_epoch: int) -> list[Stream]:
    """The open streams of every tenant. For `resolver_pruner` only."""
    rows = await _SQL.rows(conn, "streams_of_epoch", history_epoch=history_epoch)
    return [Stream(row["tenant_id"], row["catalog_id"], history_epoch) for row in rows]


async def standing(conn: Connection, history_epoch: int) -> Standing:
    """Which database this is, and how far the epoch's streams are."""
    rows = await _SQL.rows(conn, "standing", history_epoch=history_epoch)
    return Standing(**rows[0])


async def fence_before(conn: Connection, history_epoch: int) -> list[tuple[Stream, int]]:
    """End every history before an epoch; returns each with the position at which it ends. For the migrator only."""
    rows = await _SQL.rows(conn, "fence_before", history_epoch=history_epoch)
    return [
        (Stream(row["tenant_id"], row["catalog_id"], row["history_epoch"]), row["position"])
        for row in rows
    ]


async def mark_published(conn: Connection, most: int) -> int:
    """Mark a batch of changes as published, whosever they are; returns how many. For `resolver_relay` only."""
    return len(await _SQL.rows(conn, "mark_published", most=most))
