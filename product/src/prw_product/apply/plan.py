"""Decide, without any I/O, what becomes of new events and of those that wait (AW-04).

Revision check first: at or below the applied one is stale. Then dependencies: an event whose needs
are not met waits, and is looked at again whenever one of the aggregates that it waits for changes,
so a chain is released transitively and a cycle waits for ever, holding progress.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from prw_product.apply.model import Event, Key

State = tuple[Key, int]
"""An aggregate's state at one revision."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is in the database already: the applied revisions, and the states kept by revision."""

    applied: dict[Key, int]
    states: frozenset[State]


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of each event; ``applied`` is in an order that respects dependencies."""

    applied: tuple[Event, ...]
    stale: tuple[Event, ...]
    parked: tuple[Event, ...]
    released: frozenset[int]
    """Positions that waited before and are applied or stale now."""


@dataclass(slots=True)
class _Board:
    revisions: dict[Key, int]
    states: set[State]
    applied: list[Event] = field(default_factory=list)
    stale: list[Event] = field(default_factory=list)
    waiting: dict[int, Event] = field(default_factory=dict)
    by_need: dict[Key, set[int]] = field(default_factory=dict)


def plan(fresh: Iterable[Event], waiting: Iterable[Event], known: Known) -> Plan:
    """Place every event of ``fresh``, and of ``waiting`` those that it releases."""
    board = _Board(dict(known.applied), set(known.states))
    before = {event.position: event for event in waiting}
    for event in before.values():
        _wait(board, event)
    queue = deque(sorted(fresh, key=lambda event: event.position))
    while queue:
        queue.extend(_place(board, queue.popleft()))
    parked = [event for at, event in board.waiting.items() if at not in before]
    released = frozenset(at for at in before if at not in board.waiting)
    return Plan(tuple(board.applied), tuple(board.stale), tuple(parked), released)


def _place(board: _Board, event: Event) -> list[Event]:
    """Settle or park one event; returns those that must be looked at again."""
    if event.revision <= board.revisions.get(event.key, 0):
        board.stale.append(event)
    elif _is_ready(board, event):
        board.revisions[event.key] = event.revision
        board.applied.append(event)
    else:
        _wait(board, event)
        return []
    # Also a stale event brings a state that a release may name.
    board.states.add((event.key, event.revision))
    return _woken(board, event.key)


def _is_ready(board: _Board, event: Event) -> bool:
    return all(
        board.revisions.get(need.key, 0) >= need.revision
        and (not need.exact or (need.key, need.revision) in board.states)
        for need in event.needs
    )


def _wait(board: _Board, event: Event) -> None:
    board.waiting[event.position] = event
    for need in event.needs:
        board.by_need.setdefault(need.key, set()).add(event.position)
    board.by_need.setdefault(event.key, set()).add(event.position)


def _woken(board: _Board, key: Key) -> list[Event]:
    positions = sorted(board.by_need.pop(key, ()))
    return [board.waiting.pop(at) for at in positions if at in board.waiting]
