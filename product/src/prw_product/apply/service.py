"""Apply a batch of changes in one transaction, exactly once in effect (AW-04).

In this order: lock the progress row and drop what is at or below it; scope, then epoch, before the
inbox; inbox; revisions; dependencies; projection; progress through the contiguous processed prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog
from psycopg import DataError, IntegrityError
from psycopg.errors import ProgramLimitExceeded

from prw_base.faults import fault
from prw_base.scope import Scope
from prw_base.server.database import CONSUMER_TIMEOUT, Connection, Database
from prw_product.apply import store
from prw_product.apply.model import (
    DeadCode,
    Delivery,
    Event,
    Fresh,
    Outcome,
    Poison,
    Seen,
    Sorted,
    find_fresh,
    sort_out,
)
from prw_product.apply.plan import Known, Plan, plan
from prw_product.apply.projection import project
from prw_product.publish import service as publishing
from prw_product.publish import store as publish_store
from prw_product.publish.model import Generation

_log = structlog.get_logger(__name__)

_UNFIT = (DataError, IntegrityError, ProgramLimitExceeded)
"""What an event's own content makes PostgreSQL say; all else is trouble of the database, and passes."""

Decode = Callable[[Delivery], Event | Poison]
"""The port to the wire's encoding, which this room does not know."""


class GenerationMoved(Exception):
    """Another generation serves now; its consumer goes on, this one ends."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a batch; counts are of positions.

    ``progress`` is durable. ``refused`` counts dead letters, poison included. ``newest_epoch`` is
    the greatest epoch that an event of the scope named.
    """

    progress: int
    newest_epoch: int
    applied: int = 0
    stale: int = 0
    duplicates: int = 0
    parked: int = 0
    released: int = 0
    refused: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class Live:
    """The serving generation of a scope, with its durable progress."""

    generation: Generation
    progress: int


@dataclass(frozen=True, slots=True)
class _Settled:
    rows: list[Seen]
    parked: Sequence[Event]
    unparked: list[int]
    poison: list[Poison]


class _NotApplicable(Exception):
    """Events that the projection's tables do not take, by position with the reason."""

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


async def open_live(database: Database, scope: Scope, history_epoch: int) -> Live:
    """The serving generation and its progress; the first one of a catalogue is made here."""
    async with database.transaction(scope.tenant_id) as conn:
        generation, made = await publishing.open_serving(conn, scope, history_epoch)
        if made:
            await store.put_progress(conn, generation)
        progress = await store.read_progress(conn, generation)
    if progress is None:
        raise AssertionError("a serving generation has no progress")
    return Live(generation, progress)


class Applier:
    """Applies batches to one generation; several at work on one generation take turns."""

    def __init__(
        self, database: Database, decode: Decode, generation: Generation, *, serves: bool = True
    ) -> None:
        """A generation that does not serve is a shadow, whose rebuild applies to it by the same rules."""
        self._database = database
        self._decode = decode
        self._serves = serves
        self.generation = generation

    async def apply(self, deliveries: Sequence[Delivery]) -> Applied:
        """Apply a batch in any order, with repetitions and holes.

        Raises ContentChanged, GenerationMoved, and psycopg.Error; then nothing of it is applied.
        """
        batch = sort_out([self._decode(delivery) for delivery in deliveries], self.generation)
        broken: dict[int, str] = {}
        while True:
            try:
                return await self._commit(batch, broken)
            except _NotApplicable as found:
                broken |= found.reasons

    async def _commit(self, batch: Sorted, broken: dict[int, str]) -> Applied:
        tenant = self.generation.scope.tenant_id
        async with self._database.transaction(tenant, CONSUMER_TIMEOUT) as conn:
            applied = await self._apply(conn, batch, broken)
            fault("apply.before_commit")
        fault("apply.after_commit")
        return applied

    async def _apply(self, conn: Connection, batch: Sorted, broken: dict[int, str]) -> Applied:
        held = await self._lock(conn)
        fresh = find_fresh(batch, held, await self._find_inbox(conn, batch))
        events = [event for event in fresh.events if event.position not in broken]
        waiting, unfit = await self._find_waiting(conn, events, broken)
        known = await self._find_known(conn, [*events, *waiting])
        planned = plan(events, waiting, known)
        await self._project(conn, planned)
        unfit += [_broken(e, broken) for e in fresh.events if e.position in broken]
        settled = _settle(planned, fresh, unfit)
        await self._write(conn, settled)
        await self._audit(conn, batch, settled)
        progress = await store.advance_progress(conn, self.generation, held)
        return _count(progress, batch, fresh, planned, settled)

    async def _lock(self, conn: Connection) -> int:
        lock = await store.lock_progress(conn, self.generation)
        if lock is None or lock.serves is not self._serves:
            raise GenerationMoved
        await publish_store.enter(conn, self.generation)
        return lock.position

    async def _find_inbox(self, conn: Connection, batch: Sorted) -> list[Seen]:
        ours: tuple[Event | Poison, ...] = (*batch.events, *batch.undecoded)
        positions = [one.position for one in ours]
        event_ids = [event.event_id for event in batch.events]
        return await store.find_inbox(conn, self.generation, positions, event_ids)

    async def _find_waiting(
        self, conn: Connection, events: Sequence[Event], broken: dict[int, str]
    ) -> tuple[list[Event], list[Poison]]:
        """Parked events that may be released, and those of them that proved not to be applicable."""
        found = await store.find_waiting(conn, self.generation, {event.key for event in events})
        decoded = [self._decode(delivery) for delivery in found]
        parked = [event for event in decoded if isinstance(event, Event)]
        waiting = [event for event in parked if event.position not in broken]
        return waiting, [_broken(e, broken) for e in parked if e.position in broken]

    async def _find_known(self, conn: Connection, events: Sequence[Event]) -> Known:
        needs = [need for event in events for need in event.needs]
        wanted = {event.key for event in events} | {need.key for need in needs}
        applied = await store.find_applied(conn, self.generation, wanted)
        exact = {(need.key, need.revision) for need in needs if need.exact}
        states = await store.find_mapping_states(conn, self.generation, exact) if exact else set()
        return Known(applied, frozenset(states))

    async def _project(self, conn: Connection, planned: Plan) -> None:
        scope = self.generation.scope
        try:
            async with conn.transaction():
                await project(conn, scope, planned.applied, planned.stale)
        except _UNFIT as error:
            reasons = await _find_culprits(conn, scope, planned)
            if not reasons:
                raise
            raise _NotApplicable(reasons) from error

    async def _write(self, conn: Connection, settled: _Settled) -> None:
        if settled.unparked:
            await store.delete_parked(conn, self.generation, settled.unparked)
        if settled.parked:
            await store.put_parked(conn, self.generation, settled.parked)
        if settled.rows:
            await store.put_inbox(conn, self.generation, settled.rows)

    async def _audit(self, conn: Connection, batch: Sorted, settled: _Settled) -> None:
        letters = [*batch.refused, *settled.poison]
        if batch.fenced:
            await store.put_ignored(conn, self.generation, batch.fenced)
        if letters:
            await store.put_dead_letters(conn, self.generation, letters)
        done = [row.position for row in settled.rows if row.outcome is not Outcome.POISON]
        if done:
            await store.resolve_dead_letters(conn, self.generation, done)
        _alert(self.generation, letters)


async def _find_culprits(conn: Connection, scope: Scope, planned: Plan) -> dict[int, str]:
    """Fold one event at a time, each undone alone where it fails; the caller undoes them all."""
    reasons: dict[int, str] = {}
    stale = {event.position for event in planned.stale}
    for event in (*planned.applied, *planned.stale):
        alone = ([], [event]) if event.position in stale else ([event], [])
        try:
            async with conn.transaction():
                await project(conn, scope, *alone)
        except _UNFIT as error:
            reasons[event.position] = str(error).splitlines()[0]
    return reasons


def _broken(event: Event, broken: dict[int, str]) -> Poison:
    reason = broken[event.position]
    code = DeadCode.NOT_APPLICABLE
    return Poison(event.delivery, event.digest, code, reason, event.event_id)


def _settle(planned: Plan, fresh: Fresh, unfit: Sequence[Poison]) -> _Settled:
    poison = [*fresh.undecoded, *unfit]
    rows = [
        *_rows(planned.applied, Outcome.APPLIED),
        *_rows(planned.stale, Outcome.STALE),
        *_rows(planned.parked, Outcome.PARKED),
        *_rows(fresh.repeats, Outcome.DUPLICATE),
        *_rows(poison, Outcome.POISON),
    ]
    unparked = [*planned.released, *(bad.position for bad in unfit)]
    return _Settled(rows, planned.parked, unparked, poison)


def _rows(settled: Iterable[Event | Poison], outcome: Outcome) -> list[Seen]:
    return [Seen(one.position, one.event_id, one.digest, outcome) for one in settled]


def _alert(generation: Generation, letters: Sequence[Poison]) -> None:
    for letter in letters:
        _log.error(
            "change refused, progress is held",
            code=letter.code.value,
            position=letter.position,
            reason=letter.message,
            generation=generation.number,
        )


def _count(progress: int, batch: Sorted, fresh: Fresh, planned: Plan, settled: _Settled) -> Applied:
    return Applied(
        progress,
        batch.newest_epoch,
        applied=len(planned.applied),
        stale=len(planned.stale),
        duplicates=fresh.redelivered + len(fresh.repeats),
        parked=len(planned.parked),
        released=len(planned.released),
        refused=len(batch.refused) + len(settled.poison),
        ignored=len(batch.fenced),
    )
