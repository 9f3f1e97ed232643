"""A consumer as a machine: any delivery, crash and reconnect on the product's database, beside the oracle (T4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from prw.changes.v1 import change_pb2 as pb
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.apply.service import Applier, open_live
from prw_product.follow.decode import decode
from tests.product.events import EPOCH, TENANT, deliveries
from tests.product.histories import ACTS, Act, Oracle, write

T = TypeVar("T")
_STATE = """
select p.position, (select count(*) from product.inbox i where i.catalog_id = p.catalog_id
                     and i.outcome in ('applied', 'stale', 'duplicate') and i.position <= p.position) as processed,
       (select array_agg(k.position order by k.position) from product.parked k where k.catalog_id = p.catalog_id)
  from product.progress p where p.catalog_id = %s
"""
_APPLIED = """
select aggregate_id, revision from projection_1.applied_revision where catalog_id = %s
"""


class Struck(Exception):
    """The consumer died here."""


@dataclass(slots=True)
class World:
    """What all examples share."""

    database: Database
    runner: asyncio.Runner
    superuser: psycopg.Connection[Any]
    met: Counter[str] = field(default_factory=Counter)
    catalogues: Iterator[int] = field(default_factory=count)


class ConsumerMachine(RuleBasedStateMachine):
    """Each rule delivers something; after it progress, what is parked and what is applied are the oracle's."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.scope = Scope(TENANT, f"cat_{next(self.world.catalogues)}")
        self.oracle = Oracle()
        self.history: list[pb.Change] = []
        self.applier = self.do(self._connect())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end."""
        return self.world.runner.run(work)

    async def _connect(self) -> Applier:
        live = await open_live(self.world.database, self.scope, EPOCH)
        return Applier(self.world.database, decode, live.generation)

    @initialize(acts=ACTS)
    def begin(self, acts: list[Act]) -> None:
        """A history; a gap, its filling, a crash and a repetition before anything is left to chance."""
        self.history = write(acts, self.scope.catalog_id)
        self.deliver([3, 1])
        self.crash([0, 2], 4)
        self.deliver([0, 2])
        self.deliver([0, 1, 2, 3])

    @rule(at=st.lists(st.integers(0, 40), min_size=1, max_size=8))
    def deliver(self, at: list[int]) -> None:
        """Any of the changes in any order, some of them again (I3, I8)."""
        sent = [self.history[number % len(self.history)] for number in at]
        known = set(self.oracle.delivered)
        self.oracle.deliver(sent)
        applied = self.do(self.applier.apply(deliveries(sent)))
        self.world.met["repeated"] += any(one.position in known for one in sent)
        self.world.met["parked"] += applied.parked
        self.world.met["released"] += applied.released
        assert applied.progress == self.oracle.progress
        self._compare()

    @rule(at=st.lists(st.integers(0, 40), min_size=1, max_size=8), statement=st.integers(1, 14))
    def crash(self, at: list[int], statement: int) -> None:
        """It dies after a statement: nothing of the batch is left, and another one begins."""
        sent = [self.history[number % len(self.history)] for number in at]
        execute, left = psycopg.AsyncCursor.execute, [statement]

        async def strike(cursor: Any, *arguments: Any, **options: Any) -> Any:
            done = await execute(cursor, *arguments, **options)
            left[0] -= 1
            if left[0] == 0:
                raise Struck
            return done

        psycopg.AsyncCursor.execute = strike  # type: ignore[assignment, method-assign]
        try:
            self.do(self.applier.apply(deliveries(sent)))
            self.oracle.deliver(sent)
        except Struck:
            self.world.met["crashed"] += 1
        finally:
            psycopg.AsyncCursor.execute = execute  # type: ignore[method-assign]
        self._compare()
        self.reconnect()

    @rule()
    def reconnect(self) -> None:
        """As after a start: from durable progress."""
        self.applier = self.do(self._connect())

    @rule(most=st.integers(1, 12))
    def follow(self, most: int) -> None:
        """What comes next in order, as a stream gives it."""
        first = self.oracle.progress
        if first < len(self.history):
            self.deliver(list(range(first, min(first + most, len(self.history)))))

    def _compare(self) -> None:
        """I3: the inbox has all through progress; what waits is parked; I8: revisions are the oracle's."""
        whose = (self.scope.catalog_id,)
        ((progress, processed, parked),) = self.world.superuser.execute(_STATE, whose).fetchall()
        assert progress == processed == self.oracle.progress
        assert (parked or []) == self.oracle.parked
        found = self.world.superuser.execute(_APPLIED, whose).fetchall()
        assert sorted(found) == sorted((key[1], at) for key, at in self.oracle.newest.items())
        last = max(self.oracle.delivered, default=0)
        self.world.met["gaps"] += progress < last
