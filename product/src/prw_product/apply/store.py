"""The SQL of the inbox, parking, dead letters and progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prw_base.server.database import Connection
from prw_base.server.sql import load
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
from prw_product.publish import store as publish_store
from prw_product.publish.model import Generation

_SQL = load("prw_product.apply", "store.sql")


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


def keys(generation: Generation) -> dict[str, Any]:
    """The parameters that every statement of a generation's stream has."""
    return {
        **publish_store.keys(generation.scope),
        "history_epoch": generation.history_epoch,
        "generation": generation.number,
    }


async def lock_progress(conn: Connection, generation: Generation) -> Lock | None:
    """Lock the generation's progress row until the transaction ends."""
    row = await (await conn.execute(_SQL["lock_progress"], keys(generation))).fetchone()
    return None if row is None else Lock(row[0], row[1])


async def put_progress(conn: Connection, generation: Generation) -> None:
    """Begin the generation's progress at 0 where it has not begun."""
    await conn.execute(_SQL["put_progress"], keys(generation))


async def read_progress(conn: Connection, generation: Generation) -> int | None:
    """The durable progress, or None before it has begun."""
    row = await (await conn.execute(_SQL["read_progress"], keys(generation))).fetchone()
    return None if row is None else int(row[0])


async def read_counts(conn: Connection, generation: Generation) -> Counts | None:
    """Progress and what holds it."""
    row = await (await conn.execute(_SQL["count_state"], keys(generation))).fetchone()
    return None if row is None else Counts(*row)


async def find_inbox(
    conn: Connection, generation: Generation, positions: Sequence[int], event_ids: Sequence[str]
) -> list[Seen]:
    """Inbox rows of these positions, and of these events at whatever position."""
    values = keys(generation) | {"positions": list(positions), "event_ids": list(event_ids)}
    rows = await (await conn.execute(_SQL["find_inbox"], values)).fetchall()
    return [Seen(row[0], row[1], bytes(row[2]), Outcome(row[3])) for row in rows]


async def find_waiting(
    conn: Connection, generation: Generation, woken: Iterable[Key]
) -> list[Delivery]:
    """Parked events that a change of these aggregates may release, transitively."""
    values = keys(generation) | _split(woken)
    rows = await (await conn.execute(_SQL["find_waiting"], values)).fetchall()
    return [Delivery(row[0], row[1], bytes(row[2])) for row in rows]


async def find_applied(
    conn: Connection, generation: Generation, wanted: Iterable[Key]
) -> dict[Key, int]:
    """The applied revision of each aggregate that has one; others may be in the answer too."""
    values = publish_store.keys(generation.scope) | _split(wanted)
    rows = await (await conn.execute(_SQL["find_applied"], values)).fetchall()
    return {Key(AggregateType(row[0]), row[1]): row[2] for row in rows}


async def find_mapping_states(
    conn: Connection, generation: Generation, wanted: Iterable[State]
) -> set[State]:
    """Which mapping revisions are stored; others than those asked for may be in the answer."""
    states = list(wanted)
    values = publish_store.keys(generation.scope) | {
        "listings": [key.id for key, _ in states],
        "revisions": [revision for _, revision in states],
    }
    rows = await (await conn.execute(_SQL["find_mapping_states"], values)).fetchall()
    return {(Key(AggregateType.LISTING_MAPPING, row[0]), row[1]) for row in rows}


def _split(wanted: Iterable[Key]) -> dict[str, Any]:
    listed = list(wanted)
    return {"types": [key.type.value for key in listed], "ids": [key.id for key in listed]}


async def put_inbox(conn: Connection, generation: Generation, rows: Sequence[Seen]) -> None:
    """Note what became of each position; every row must be written, for the lock is held."""
    values = keys(generation) | {
        "positions": [row.position for row in rows],
        "event_ids": [row.event_id for row in rows],
        "digests": [row.digest for row in rows],
        "outcomes": [row.outcome.value for row in rows],
    }
    written = (await conn.execute(_SQL["put_inbox"], values)).rowcount
    if written != len(rows):
        raise AssertionError(f"{len(rows) - written} inbox rows were settled by somebody else")


async def put_parked(conn: Connection, generation: Generation, events: Sequence[Event]) -> None:
    """Keep events until what they need is applied."""
    values = keys(generation) | {
        "positions": [event.position for event in events],
        "types": [event.key.type.value for event in events],
        "ids": [event.key.id for event in events],
        "committed": [event.delivery.committed_at for event in events],
        "events": [event.delivery.event for event in events],
    }
    await conn.execute(_SQL["put_parked"], values)
    await conn.execute(_SQL["put_parked_needs"], keys(generation) | _needs(events))


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
    values = keys(generation) | {"positions": list(positions)}
    await conn.execute(_SQL["delete_parked_needs"], values)
    await conn.execute(_SQL["delete_parked"], values)


async def put_dead_letters(
    conn: Connection, generation: Generation, letters: Sequence[Poison]
) -> None:
    """Keep what is refused, whole, for an operator."""
    once = list({(letter.position, letter.digest): letter for letter in letters}.values())
    values = keys(generation) | {
        "positions": [letter.position for letter in once],
        "digests": [letter.digest for letter in once],
        "codes": [letter.code.value for letter in once],
        "messages": [letter.message for letter in once],
        "events": [letter.delivery.event for letter in once],
    }
    await conn.execute(_SQL["put_dead_letters"], values)


async def resolve_dead_letters(
    conn: Connection, generation: Generation, positions: Sequence[int]
) -> None:
    """Mark refusals of positions that are processed now."""
    values = keys(generation) | {"positions": list(positions)}
    await conn.execute(_SQL["resolve_dead_letters"], values)


async def put_ignored(conn: Connection, generation: Generation, events: Sequence[Event]) -> None:
    """Audit events of fenced epochs."""
    values = keys(generation) | {
        "epochs": [event.history_epoch for event in events],
        "positions": [event.position for event in events],
        "digests": [event.digest for event in events],
        "event_ids": [event.event_id for event in events],
    }
    await conn.execute(_SQL["put_ignored"], values)


async def advance_progress(conn: Connection, generation: Generation, held: int) -> int:
    """Move progress from ``held`` through the contiguous processed prefix; returns it."""
    values = keys(generation) | {"progress": held}
    row = await (await conn.execute(_SQL["advance_progress"], values)).fetchone()
    if row is None:
        raise AssertionError("progress moved while it was locked")
    return int(row[0])
