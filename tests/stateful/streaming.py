"""The stream's protocols as a hypothesis machine: each rule drives PostgreSQL and a small oracle, and compares them.

An example has a tenant of its own in one database, so that nothing of a former one is in its way. Rules run one after
another; what happens at once is the matter of the tests of interleavings and kills.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
)

from prw.errors import Code, PrwError
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_resolver.stream.committer import Committer
from prw_resolver.stream.model import Change, Committed
from prw_resolver.stream.pruner import Pruner
from prw_resolver.stream.relay import Relay
from prw_resolver.stream.retained import Budget, PruneSettings
from prw_resolver.stream.retention import Retention
from prw_resolver.stream.service import Feed
from prw_resolver.stream.signal import Signal
from tests.resolver.catalogue import Rooms, rooms
from tests.resolver.writing import introduction

T = TypeVar("T")
ME = "product-1"
_BUDGET = Budget(10**9, 10**9, timedelta(days=1))
HOLES = """
select c.position, r.pruned_through, count(o.position) as held, min(o.position) as first, max(o.position) as last
  from resolver.stream_cursor c
  join resolver.stream_retention r using (tenant_id, catalog_id, history_epoch)
  left join resolver.outbox o using (tenant_id, catalog_id, history_epoch)
 where c.tenant_id = %s and c.history_epoch = %s
 group by 1, 2
"""
_REPORTED = (
    "select consumer_id, status, reported_position from resolver.stream_consumer"
    " where tenant_id = %s and history_epoch = %s"
)
END_LEASE = (
    "update resolver.stream_lease set granted_at = granted_at - interval '2 days',"
    " expires_at = clock_timestamp() - interval '1 ms' where lease_id = %s"
)


class Trusted:
    """A control plane that a rule may move on under everybody who asks it."""

    def __init__(self) -> None:
        self.epoch = 1

    def current(self) -> int:
        """The trusted epoch."""
        return self.epoch

    def require(self, history_epoch: int) -> None:
        """Raise EPOCH_FENCED unless it is that one."""
        if history_epoch != self.epoch:
            raise PrwError(Code.EPOCH_FENCED, f"{history_epoch} is fenced")


@dataclass(slots=True)
class World:
    """What all examples share: the database, a loop, and what they have been through."""

    dsns: dict[str, str]
    folder: Path
    runner: asyncio.Runner
    superuser: psycopg.Connection[Any]
    relay: Database
    pruner: Database
    met: Counter[str] = field(default_factory=Counter)
    tenants: Iterator[int] = field(default_factory=count)


@dataclass(slots=True)
class Reader:
    """A consumer in the oracle: what it has durably processed, and what it last reported."""

    status: str
    reported: int
    durable: int


@dataclass(slots=True)
class Pin:
    """A lease in the oracle."""

    at: int
    lasts: bool = True


@dataclass(slots=True)
class Said:
    """One epoch of the stream in the oracle: positions, marks, the floor, and everybody who holds something."""

    cursor: int = 0
    published: int = 0
    floor: int = 0
    content: dict[int, bytes] = field(default_factory=dict)
    readers: dict[str, Reader] = field(default_factory=dict)
    leases: dict[str, Pin] = field(default_factory=dict)

    def bound(self) -> int:
        """I4: how far pruning may go."""
        reported = [one.reported for one in self.readers.values() if one.status != "retired"]
        pins = [one.at for one in self.leases.values() if one.lasts]
        return max(self.floor, min([self.published, *reported, *pins]))


class StreamMachine(RuleBasedStateMachine):
    """Allocating, relaying and following (I1, I2, I5, I6, I7): commits, rollbacks, repetitions, pages, reports."""

    world: World

    commands = Bundle("commands")
    consumers = Bundle("consumers")

    def __init__(self) -> None:
        super().__init__()
        self.said = Said()
        self.epoch = Trusted()
        self.numbers = count()
        self.scope = Scope(f"ten_{next(self.world.tenants)}", "cat_primary")
        self.stack = AsyncExitStack()
        self.do(self._open())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end."""
        return self.world.runner.run(work)

    async def _open(self) -> None:
        world = self.world
        self.rooms: Rooms = await self.stack.enter_async_context(
            rooms(world.dsns["resolver_app"], world.folder, self.scope)
        )
        database = self.rooms.database
        self.feed = Feed(database, self.epoch)
        self.retention = Retention(database, self.epoch)
        settings = PruneSettings(timedelta(0), timedelta(seconds=1), _BUDGET)
        self.pruner = Pruner(world.pruner, self.epoch, settings)
        await self._start_writers()
        self.stream = await self.feed.stream(self.scope.tenant_id, self.scope.catalog_id)

    async def _start_writers(self) -> None:
        """Two, which know their stream and so its epoch from now on."""
        self.writers = [Committer(self.rooms.database, self.epoch, Signal()) for _ in range(2)]
        for writer in self.writers:
            await writer.former_answer(self.scope.tenant_id, self.scope.catalog_id, "none", "")

    def teardown(self) -> None:
        """Leave nothing unpublished, since the relay marks every tenant's changes."""
        for writer in self.writers:
            self.do(writer.close())
        while self.do(Relay(self.world.relay).mark()):
            pass
        self.do(self.stack.aclose())

    def change(self) -> Change:
        """A change that nobody has made, of three positions."""
        return introduction(self.rooms.vocabulary, str(next(self.numbers)), scope=self.scope)

    def refused(self, work: Coroutine[Any, Any, Any]) -> Code | None:
        """The code that it is refused by."""
        try:
            self.do(work)
        except PrwError as error:
            return error.code
        return None

    def took(self, answers: list[Committed]) -> None:
        """Consecutive positions in some order of the members, right after the cursor."""
        for answer in sorted(answers, key=lambda one: one.first_position):
            assert not answer.replayed
            assert answer.first_position == self.said.cursor + 1
            self.said.cursor += 3
            assert answer.last_position == self.said.cursor

    @rule(target=commands, writers=st.lists(st.integers(0, 1), min_size=1, max_size=4))
    def commit(self, writers: list[int]) -> tuple[Change, Committed]:
        """Several callers at once, through two writers."""
        changes = [self.change() for _ in writers]
        answers = self.do(self._commit(changes, writers))
        assert not [answer for answer in answers if isinstance(answer, BaseException)]
        self.took([answer for answer in answers if isinstance(answer, Committed)])
        self.world.met["committed"] += 1
        self.world.met["two writers at once"] += len(set(writers)) > 1
        assert isinstance(answers[0], Committed)
        return changes[0], answers[0]

    async def _commit(
        self, changes: list[Change], writers: list[int]
    ) -> list[Committed | BaseException]:
        commits = [
            self.writers[number].commit(change)
            for change, number in zip(changes, writers, strict=True)
        ]
        return await asyncio.gather(*commits, return_exceptions=True)

    @rule(writer=st.integers(0, 1), at=st.integers(0, 2))
    def commit_with_a_bad_one(self, writer: int, at: int) -> None:
        """T3: one of three fails alone, and its positions are the others'."""
        changes = [self.change() for _ in range(3)]
        wrong = tuple(replace(fact, revision=7) for fact in changes[at].facts)
        changes[at] = replace(changes[at], facts=wrong)
        answers = self.do(self._commit(changes, [writer] * 3))
        bad = answers.pop(at)
        assert isinstance(bad, PrwError)
        assert bad.code is Code.STALE_FACT_REVISION
        self.took([answer for answer in answers if isinstance(answer, Committed)])
        self.world.met["rolled back"] += 1

    @rule(known=commands, writer=st.integers(0, 1))
    def commit_again(self, known: tuple[Change, Committed], writer: int) -> None:
        """A command that is known gives its former answer and takes no position."""
        change, former = known
        again = self.do(self.writers[writer].commit(change))
        assert replace(again, replayed=False) == former
        assert again.replayed
        self.world.met["asked again"] += 1

    @rule(most=st.sampled_from([2, 5, 40]))
    def relay(self, most: int) -> None:
        """Marks the oldest that are not marked."""
        marked = self.do(Relay(self.world.relay, batch=most).mark())
        assert marked == min(most, self.said.cursor - self.said.published)
        self.said.published += marked
        self.world.met["relayed"] += marked > 0

    @rule(target=consumers)
    def register(self) -> str:
        """A consumer starts at the floor."""
        name = f"consumer_{next(self.numbers)}"
        tenant, catalog = self.scope.tenant_id, self.scope.catalog_id
        found = self.do(self.feed.register(tenant, catalog, name, ME))
        assert (found.pruned_through, found.reported_position) == (self.said.floor,) * 2
        self.said.readers[name] = Reader("live", self.said.floor, self.said.floor)
        return name

    @rule(name=consumers, size=st.integers(1, 9), reports=st.booleans())
    def read(self, name: str, size: int, reports: bool) -> None:
        """I5, I7: the page after what it has processed is whole, and says what it said to everybody before."""
        reader = self.said.readers.get(name)
        if reader is None:
            return
        if reader.durable < self.said.floor:
            code = self.refused(self.feed.page(self.stream, reader.durable, size))
            assert code is Code.CURSOR_PRUNED
            reader.durable = self.said.floor
            self.world.met["told that it is pruned"] += 1
            return
        page = self.do(self.feed.page(self.stream, reader.durable, size))
        positions = [change.position for change in page.changes]
        last = min(self.said.cursor, reader.durable + size)
        assert positions == list(range(reader.durable + 1, last + 1))
        assert (page.cursor_position, page.pruned_through) == (self.said.cursor, self.said.floor)
        for change in page.changes:
            digest = hashlib.sha256(change.event).digest()
            assert self.said.content.setdefault(change.position, digest) == digest
        reader.durable = last
        self.world.met["read"] += bool(positions)
        if reports:
            self.report(name, 0)
            self.report(name, 2)

    @rule(name=consumers, back=st.integers(0, 4))
    def report(self, name: str, back: int) -> None:
        """I6: reports are kept monotonic; a late one changes nothing, and a paused consumer is back."""
        reader = self.said.readers.get(name)
        if reader is None:
            return
        position = max(0, reader.durable - back)
        reporting = self.feed.report(self.stream, name, ME, position)
        if reader.status == "retired":
            assert self.refused(reporting) is Code.NOT_FOUND
            return
        kept, _ = self.do(reporting)
        self.world.met["reported late"] += position < reader.reported
        self.world.met["reported"] += position > reader.reported
        reader.reported, reader.status = max(reader.reported, position), "live"
        assert kept == reader.reported

    @rule(name=consumers)
    def report_beyond_the_cursor(self, name: str) -> None:
        """Nobody has processed what is not there."""
        if name in self.said.readers and self.said.readers[name].status != "retired":
            beyond = self.feed.report(self.stream, name, ME, self.said.cursor + 1)
            assert self.refused(beyond) is Code.CURSOR_AHEAD

    @invariant()
    def holds(self) -> None:
        """I1, I6 and the oracle's figures, as the tables have them."""
        whose = (self.scope.tenant_id, self.stream.history_epoch)
        ((position, floor, held, first, last),) = self.world.superuser.execute(
            HOLES, whose
        ).fetchall()
        assert (position, floor) == (self.said.cursor, self.said.floor)
        assert held == position - floor
        assert not held or (first, last) == (floor + 1, position)
        found = self.world.superuser.execute(_REPORTED, whose).fetchall()
        assert {name: (status, at) for name, status, at in found} == {
            name: (one.status, one.reported) for name, one in self.said.readers.items()
        }
        assert all(
            one.reported <= max(one.durable, self.said.floor) for one in self.said.readers.values()
        )
