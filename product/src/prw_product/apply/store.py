"""The SQL of the inbox, parking, dead letters and progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_product.apply.model import (
    AggregateType,
    Delivery,
    Event,
    Key,
    Outcome,
    Poison,
    Seen,
)
from prw_product.apply.plan import State
from prw_product.publish.model import Generation

_SQL = Statements("prw_product.apply")


@dataclass(frozen=True, slots=True)
class Lock:
    """Progress as it stood when it was locked, and whether its generation serves."""

    position: int
    serves: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """A consumer as an operator sees it; ``poison`` counts positions above progress."""

    progress: int
    parked: int
    poison: int
    dead_letters: int
    ignored: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Hold:
    """Why progress does not move: ``code`` and ``message`` of a refusal, or what is waited for.

    With neither the position has not come, though later ones have.
    """

    position: int
    code: str | None
    message: str | None
    waits_for: str | None

    def __str__(self) -> str:
        if self.code is not None:
            return f"position {self.position}: {self.code}, {self.message}"
        if self.waits_for is not None:
            return f"position {self.position} waits for {self.waits_for}"
        return f"position {self.position} has not come"


async def lock_progress(conn: Connection, generation: Generation) -> Lock | None:
    """Lock the generation's progress row until the transaction ends."""
    row = await _SQL.row(conn, "lock_progress", **generation.ids)
    return None if row is None else Lock(**row)


async def put_progress(conn: Connection, generation: Generation) -> None:
    """Begin the generation's progress at 0 where it has not begun."""
    await _SQL.run(conn, "put_progress", **generation.ids)


async def read_progress(conn: Connection, generation: Generation) -> int | None:
    """The durable progress, or None before it has begun."""
    row = await _SQL.row(conn, "read_progress", **generation.ids)
    return None if row is None else int(row["position"])


async def read_counts(conn: Connection, generation: Generation) -> Counts | None:
    """Progress and what holds it."""
    row = await _SQL.row(conn, "count_state", **generation.ids)
    return None if row is None else Counts(**row)


async def find_hold(conn: Connection, generation: Generation) -> Hold | None:
    """What holds progress, or None where nothing above it has come; the generation is entered."""
    row = await _SQL.row(conn, "find_hold", **generation.ids)
    if row is None or (row["outcome"] is None and row["code"] is None and not row["later"]):
        return None
    return Hold(row["position"], row["code"], row["message"], row["waits_for"])


async def find_inbox(
    conn: Connection, generation: Generation, positions: Sequence[int], event_ids: Sequence[str]
) -> list[Seen]:
    """Inbox rows of these positions, and of these events at whatever position."""
    values = generation.ids | {"positions": list(positions), "event_ids": list(event_ids)}
    rows = await _SQL.rows(conn, "find_inbox", **values)
    return [Seen(**row | {"outcome": Outcome(row["outcome"])}) for row in rows]


async def find_waiting(
    conn: Connection, generation: Generation, woken: Iterable[Key]
) -> list[Delivery]:
    """Parked events that a change of these aggregates may release, transitively."""
    values = generation.ids | _split(woken)
    rows = await _SQL.rows(conn, "find_waiting", **values)
    return [Delivery(**row) for row in rows]


async def find_applied(
    conn: Connection, generation: Generation, wanted: Iterable[Key]
) -> dict[Key, int]:
    """The applied revision of each aggregate that has one; others may be in the answer too."""
    values = generation.scope.ids | _split(wanted)
    rows = await _SQL.rows(conn, "find_applied", **values)
    return {
        Key(AggregateType(row["aggregate_type"]), row["aggregate_id"]): row["revision"]
        for row in rows
    }


async def find_mapping_states(
    conn: Connection, generation: Generation, wanted: Iterable[State]
) -> set[State]:
    """Which mapping revisions are stored; others than those asked for may be in the answer."""
    states = list(wanted)
    values = generation.scope.ids | {
        "listings": [key.id for key, _ in states],
        "revisions": [revision for _, revision in states],
    }
    rows = await _SQL.rows(conn, "find_mapping_states", **values)
    return {
        (Key(AggregateType.LISTING_MAPPING, row["listing_id"]), row["revision"]) for row in rows
    }


def _split(wanted: Iterable[Key]) -> dict[str, Any]:
    listed = list(wanted)
    return {"types": [key.type.value for key in listed], "ids": [key.id for key in listed]}


async def put_inbox(conn: Connection, generation: Generation, rows: Sequence[Seen]) -> None:
    """Note what became of each position; every row must be written, for the lock is held."""
    values = generation.ids | {
        "positions": [row.position for row in rows],
        "event_ids": [row.event_id for row in rows],
        "digests": [row.digest for row in rows],
        "outcomes": [row.outcome.value for row in rows],
    }
    written = await _SQL.run(conn, "put_inbox", **values)
    if written != len(rows):
        raise AssertionError(f"{len(rows) - written} inbox rows were settled by somebody else")


async def put_parked(conn: Connection, generation: Generation, events: Sequence[Event]) -> None:
    """Keep events until what they need is applied."""
    values = generation.ids | {
        "positions": [event.position for event in events],
        "types": [event.key.type.value for event in events],
        "ids": [event.key.id for event in events],
        "committed": [event.delivery.committed_at for event in events],
        "events": [event.delivery.event for event in events],
    }
    await _SQL.run(conn, "put_parked", **values)
    await _SQL.run(conn, "put_parked_needs", **generation.ids, **_needs(events))


def _needs(events: Sequence[Event]) -> dict[str, Any]:
    """Also the event's own aggregate, since a newer revision of it makes the event stale."""
    needed: dict[tuple[int, Key], int] = {}
    for event in events:
        needed[event.position, event.key] = event.revision
        for need in event.needs:
            at = event.position, need.key
            needed[at] = max(needed.get(at, 0), need.revision)
    return {
        "positions": [position for position, _ in needed],
        **_split(key for _, key in needed),
        "revisions": list(needed.values()),
    }


async def delete_parked(conn: Connection, generation: Generation, positions: Sequence[int]) -> None:
    """Let go of events that wait no longer."""
    values = generation.ids | {"positions": list(positions)}
    await _SQL.run(conn, "delete_parked_needs", **values)
    await _SQL.run(conn, "delete_parked", **values)


async def put_dead_letters(
    conn: Connection, generation: Generation, letters: Sequence[Poison]
) -> None:
    """Keep what is refused, whole, for an operator."""
    once = list({(letter.position, letter.digest): letter for letter in letters}.values())
    values = generation.ids | {
        "positions": [letter.position for letter in once],
        "digests": [letter.digest for letter in once],
        "codes": [letter.code.value for letter in once],
        "messages": [letter.message for letter in once],
        "events": [letter.delivery.event for letter in once],
    }
    await _SQL.run(conn, "put_dead_letters", **values)


async def resolve_dead_letters(
    conn: Connection, generation: Generation, positions: Sequence[int]
) -> None:
    """Mark refusals of positions that are processed now."""
    values = generation.ids | {"positions": list(positions)}
    await _SQL.run(conn, "resolve_dead_letters", **values)


async def put_ignored(conn: Connection, generation: Generation, events: Sequence[Event]) -> None:
    """Audit events of fenced epochs."""
    values = generation.ids | {
        "epochs": [event.history_epoch for event in events],
        "positions": [event.position for event in events],
        "digests": [event.digest for event in events],
        "event_ids": [event.event_id for event in events],
    }
    await _SQL.run(conn, "put_ignored", **values)


async def advance_progress(conn: Connection, generation: Generation, held: int) -> int:
    """Move progress from ``held`` through the contiguous processed prefix; returns it."""
    values = generation.ids | {"progress": held}
    row = await _SQL.row(conn, "advance_progress", **values)
    if row is None:
        raise AssertionError("progress moved while it was locked")
    return int(row["position"])
