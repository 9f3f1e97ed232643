"""Retention and epochs as machines: what they add to that of the stream (I4, restores)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, initialize, precondition, rule

from prw.errors import Code
from prw_resolver.stream.committer import Committer
from prw_resolver.stream.model import Change, Committed, Stream
from prw_resolver.stream.relay import Relay
from prw_resolver.stream.retained import ConsumerAct
from tests.stateful.streaming import END_LEASE, HOLES, ME, Pin, Said, StreamMachine


class RetentionMachine(StreamMachine):
    """Pruning, consumers' states and leases (I4): at each pruning as much goes as may, and no more."""

    leases = Bundle("leases")

    @initialize(target=leases)
    def first_round(self) -> Any:
        """Each interesting thing once, since what is chosen at random leaves some of them out."""
        known, name, lease = self.commit([0, 1]), self.register(), self.grant()
        self.relay(4)
        self.commit_with_a_bad_one(0, 1)
        self.read(name, 6, reports=True)
        self.prune()
        self.renew(lease, 6)
        self.prune()
        self.run_out(lease)
        self.renew(lease, 6)
        self.relay(40)
        self.register()
        self.prune()
        for act in ConsumerAct:
            self.move(name, act)
        self.move(name, ConsumerAct.RESUME)
        self.commit_again(known, 1)
        return lease

    @rule()
    def prune(self) -> None:
        """Goes exactly through the oracle's bound."""
        gone = self.do(self.pruner.prune(self.stream))
        bound = self.said.bound()
        assert gone == bound - self.said.floor
        held = any(one.lasts and one.at == bound for one in self.said.leases.values())
        self.world.met["pruned"] += gone > 0
        self.world.met["held by a lease"] += held and bound < self.said.published
        self.said.floor = bound

    @rule()
    def catch_up_and_prune(self) -> None:
        """Everybody reads and reports all, leases move on, and all of it goes."""
        self.relay(10**6)
        for name in self.said.readers:
            self.read(name, 400, reports=False)
            self.read(name, 400, reports=False)
            self.report(name, 0)
        for lease_id, held in self.said.leases.items():
            if held.lasts:
                self.renew(lease_id, self.said.cursor)
        self.prune()
        assert self.said.floor == self.said.cursor

    @rule(name=StreamMachine.consumers, act=st.sampled_from(list(ConsumerAct)))
    def move(self, name: str, act: ConsumerAct) -> None:
        """An operator pauses, resumes or retires a consumer."""
        reader = self.said.readers.get(name)
        if reader is None:
            return
        self.do(self.retention.move_consumer(self.stream, name, act, "operator", "a test says so"))
        status = {"paused": "paused", "resumed": "live", "retired": "retired"}[act.value]
        if status != reader.status:
            reader.status, reader.reported = status, max(reader.reported, self.said.floor)
        self.world.met[status] += 1

    @rule(target=leases)
    def grant(self) -> str:
        """A lease is pinned at the floor."""
        lease = self.do(self.retention.grant(self.stream, ME))
        assert lease.pin == self.said.floor
        self.said.leases[lease.lease_id] = Pin(lease.pin)
        return lease.lease_id

    @rule(lease_id=leases, pin=st.integers(0, 12))
    def renew(self, lease_id: str, pin: int) -> None:
        """A pin moves forward only and never beyond the cursor; a lease that is over stays so."""
        held = self.said.leases.get(lease_id)
        if held is None:
            return
        renewing = self.retention.renew(self.stream, lease_id, ME, pin)
        if not held.lasts:
            assert self.refused(renewing) is Code.LEASE_EXPIRED
            self.world.met["renewed too late"] += 1
            return
        lease = self.do(renewing)
        held.at = max(held.at, min(pin, self.said.cursor))
        assert lease.pin == held.at
        assert self.do(self.retention.renew(self.stream, lease_id, ME, 0)).pin == held.at
        self.world.met["renewed"] += 1

    @rule(lease_id=leases)
    def run_out(self, lease_id: str) -> None:
        """Its time passes, by the server's clock."""
        if lease_id in self.said.leases:
            self.world.superuser.execute(END_LEASE, (lease_id,))
            self.said.leases[lease_id].lasts = False

    @rule(lease_id=consumes(leases))
    def release(self, lease_id: str) -> None:
        """Given back; it holds nothing any more."""
        if lease_id in self.said.leases:
            self.do(self.retention.release(self.stream, lease_id, ME))
            self.said.leases[lease_id].lasts = False


class EpochMachine(RetentionMachine):
    """A restore moves the control plane on: the old epoch's writers, reports, leases and prunings are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.former: list[tuple[Stream, Said, list[Committer]]] = []

    @initialize()
    def first_fencing(self) -> None:
        """One restore at least."""
        self.commit([0])
        name = self.register()
        self.fence()
        self._refuse(0, str(name))

    @rule()
    @precondition(lambda self: len(self.former) < 3 and self.said.cursor > 0)
    def fence(self) -> None:
        """A greater epoch: its own cursor, floor, consumers and leases, from nothing."""
        self.former.append((self.stream, self.said, self.writers))
        self.epoch.epoch += 1
        # What the relay marks is not asked for its epoch; the oracle counts the current one's only.
        while self.do(Relay(self.world.relay).mark()):
            pass
        self.do(self._start_writers())
        tenant, catalog = self.scope.tenant_id, self.scope.catalog_id
        self.stream = self.do(self.feed.stream(tenant, catalog))
        self.said = Said()

    @rule(number=st.integers(0, 2), consumer=StreamMachine.consumers)
    @precondition(lambda self: bool(self.former))
    def the_old_is_refused(self, number: int, consumer: str) -> None:
        """EPOCH_FENCED for all that an old epoch could do, and nothing of it has moved."""
        self._refuse(number % len(self.former), consumer)

    def _refuse(self, number: int, consumer: str) -> None:
        stream, said, writers = self.former[number]
        lease = next(iter(said.leases), "lea_none")
        acts: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: writers[0].commit(self.change()),
            lambda: self.feed.page(stream, said.floor),
            lambda: self.feed.report(stream, consumer, ME, said.cursor),
            lambda: self.retention.grant(stream, ME),
            lambda: self.retention.renew(stream, lease, ME),
            lambda: self.pruner.prune(stream),
        ]
        assert [self.refused(act()) for act in acts] == [Code.EPOCH_FENCED] * len(acts)
        whose = (self.scope.tenant_id, stream.history_epoch)
        found = self.world.superuser.execute(HOLES, whose).fetchall()
        assert [row[:2] for row in found] == [(said.cursor, said.floor)]
        self.world.met["refused as fenced"] += 1

    @rule(known=StreamMachine.commands)
    @precondition(lambda self: bool(self.former))
    def ask_for_an_old_command(self, known: tuple[Change, Committed]) -> None:
        """A command of a fenced epoch keeps its answer, and is not made a second time."""
        self.commit_again(known, 0)

    def teardown(self) -> None:
        """Close the fenced writers too."""
        for _, _, writers in self.former:
            for writer in writers:
                self.do(writer.close())
        super().teardown()
