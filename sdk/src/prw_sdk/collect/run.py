"""The run: plan, fetch, keep, and advance the checkpoint last.

An item is passed only when its outcome is in the ledger: terminal, or put off durably. A crash
anywhere, a second run over the same spool, or two runs at once end in the same state as one clean run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from prw.errors import PrwError
from prw_base.canonical import canonical_json
from prw_base.faults import fault
from prw_sdk.adapter import Adapter, Batch, Checkpoint, Source, Target
from prw_sdk.collect.attempt import (
    ADAPTER_ERROR,
    READ_FAILED,
    AdapterFailed,
    Attempt,
    Maker,
    foreign,
    utc_now,
)
from prw_sdk.evidence import Egress, Region
from prw_sdk.fetch.http import HttpNet, NetConfig
from prw_sdk.fetch.outcome import FetchFailed
from prw_sdk.fetch.polite import HostGates, Politeness
from prw_sdk.report import Event, EventKind, Failure, SourceReport, Watch, unwatched
from prw_sdk.spool.folder import Spool, TurnGivenUp
from prw_sdk.spool.model import (
    NEVER_SETTLED,
    CheckpointKey,
    Item,
    ItemKey,
    Outcome,
    Run,
    SavedCheckpoint,
    presentable,
)
from prw_sdk.spool.sqlite import SpoolUnusable


@dataclass(frozen=True, slots=True)
class SourceJob:
    """One source to run: its adapter, and how it is reached."""

    tenant: str
    source: Source
    adapter: Adapter
    net: NetConfig
    region: Region = Region()
    egress: Egress = Egress()


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Targets of one source in flight at once, and failed attempts before an item is set aside."""

    concurrency: int = 8
    attempt_budget: int = 5
    manners: Politeness = Politeness()


async def collect(
    jobs: Sequence[SourceJob],
    spool: Spool,
    limits: RunLimits,
    *,
    watch: Watch = unwatched,
    stop: asyncio.Event | None = None,
) -> tuple[SourceReport, ...]:
    """Run every source at once into the spool; one report each, in the order given.

    Once `stop` is set nothing new is begun, and what is in flight is finished. Raises `SpoolUnusable` where the spool
    cannot be written: the runs are unfinished then, and a later one takes them up.
    """
    gates = HostGates(limits.manners)
    stop = stop or asyncio.Event()
    runs = [SourceRun(job, spool, limits, watch, stop) for job in jobs]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_with_net(run, gates)) for run in runs]
    except BaseExceptionGroup as several:
        unusable, other = several.split(SpoolUnusable)
        if unusable is None or other is not None:
            raise
        raise _first(unusable) from several
    return tuple(task.result() for task in tasks)


def _first(several: BaseExceptionGroup[SpoolUnusable]) -> SpoolUnusable:
    one: BaseException = several
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    return SpoolUnusable(str(one))


async def _with_net(run: SourceRun, gates: HostGates) -> SourceReport:
    net = HttpNet(run.job.net, gates)
    try:
        return await run.go(net)
    finally:
        await net.aclose()


class SourceRun:
    """One run of one source."""

    def __init__(
        self,
        job: SourceJob,
        spool: Spool,
        limits: RunLimits,
        watch: Watch = unwatched,
        stop: asyncio.Event | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.job = job
        self._spool = spool
        self._maker = Maker(job.source, job.adapter, job.region, job.egress)
        self._attempt = Attempt(self._maker, spool.blobs, limits.attempt_budget, clock)
        self._concurrency = limits.concurrency
        self._watch = watch
        self._stop = stop or asyncio.Event()
        self._clock = clock
        self._saved: dict[str, SavedCheckpoint] = {}
        self._outcomes: Counter[Outcome] = Counter()
        self._planned = self._kept = self._skipped = self._unreadable = 0

    async def go(self, net: HttpNet) -> SourceReport:
        """Run the source to its end, to a failure of its plan, or until it is stopped."""
        try:
            return await self._in_turn(net)
        except TurnGivenUp:
            return SourceReport(self.job.source.source_id, 0, stopped=True)

    async def _in_turn(self, net: HttpNet) -> SourceReport:
        tenant, source_id, ledger = self.job.tenant, self.job.source.source_id, self._spool.ledger
        async with self._spool.turn(tenant, source_id, self._say_waiting, self._stop) as waited:
            if waited and not ledger.is_unfinished(tenant, source_id):
                return self._joined()
            run = ledger.begin_run(tenant, source_id, self._clock())
            self._tell(EventKind.STARTED)
            failure = await self._walk(run, net)
            if not self._stop.is_set():
                fault("collect.before_finish")
                ledger.finish_run(run, self._clock())
            self._tell(EventKind.ENDED)
            return self._report(run, net, failure)

    async def _walk(self, run: Run, net: HttpNet) -> Failure | None:
        """Everything between the start and the end of a run; why it ended early, if it did."""
        try:
            self._maker.config()
            await self._take_up_due(run, net)
            await self._take_plan(run, net)
        except FetchFailed as failed:
            return self._fail(failed.code, f"{failed.url}: {failed.message}")
        except AdapterFailed as broken:
            return self._fail(ADAPTER_ERROR, str(broken))
        except PrwError as refused:
            return self._fail(refused.code.value, refused.message)
        return None

    async def _take_up_due(self, run: Run, net: HttpNet) -> None:
        while not self._stop.is_set():
            due = self._spool.ledger.due(run.tenant, run.source_id, self._clock())
            if not due:
                return
            await self._take(run, [Target(item.key.native_id, item.url) for item in due], net)

    async def _take_plan(self, run: Run, net: HttpNet) -> None:
        start = self._checkpoint(run, "")
        begun = Checkpoint(start.state) if start.revision else None
        with foreign("plan"):
            plan = self.job.adapter.plan(self.job.source, begun, net)
        while not self._stop.is_set() and (batch := await _next(plan)) is not None:
            fault("collect.after_plan")
            await self._take(run, batch.targets, net)
            if batch.then is not None and not self._stop.is_set():
                self._advance(run, batch.then)

    def _checkpoint(self, run: Run, partition: str) -> SavedCheckpoint:
        if partition not in self._saved:
            key = CheckpointKey(run.tenant, run.source_id, self.job.adapter.name, partition)
            self._saved[partition] = self._spool.checkpoints.load(key)
        return self._saved[partition]

    def _advance(self, run: Run, reached: Checkpoint) -> None:
        expected = self._checkpoint(run, reached.partition)
        if expected.revision and dict(expected.state) == dict(reached.state):
            return
        with foreign("a checkpoint of the plan"):
            canonical_json(reached.state)
        fault("collect.before_checkpoint")
        now = self._clock()
        advanced = self._spool.checkpoints.advance(expected, reached.state, now)
        self._saved[reached.partition] = advanced
        fault("collect.after_checkpoint")
        self._tell(EventKind.CHECKPOINT)

    async def _take(self, run: Run, targets: Sequence[Target], net: HttpNet) -> None:
        self._planned += len(targets)
        self._tell(EventKind.PLANNED, count=len(targets))
        # one iterator for all workers: each takes the next target when it is free
        waiting = iter(targets)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._concurrency, len(targets))):
                group.create_task(self._work(run, waiting, net))

    async def _work(self, run: Run, waiting: Iterable[Target], net: HttpNet) -> None:
        for target in waiting:
            if self._stop.is_set():
                return
            await self._settle(run, target, net)

    async def _settle(self, run: Run, target: Target, net: HttpNet) -> None:
        key = ItemKey(run.tenant, run.source_id, presentable(target.native_id))
        found = await asyncio.to_thread(self._spool.ledger.item, key)
        if found is not None and found.is_settled_in(run.generation, self._clock()):
            return self._count(found, skipped=True)
        earlier = None if found is None else found.verdict
        settlement = await self._attempt.at(target, net, earlier)
        version = NEVER_SETTLED if found is None else found.version
        url = target.url.encode("utf-8", errors="replace").decode("utf-8")
        item = Item(key, url, settlement.verdict, version, run.generation, self._clock())
        applied = await asyncio.to_thread(
            self._spool.ledger.settle, version, item, settlement.capture
        )
        fault("collect.after_keep")
        self._count(item, skipped=not applied, kept=applied and settlement.capture is not None)
        return None

    def _count(self, item: Item, *, skipped: bool, kept: bool = False) -> None:
        self._outcomes[item.verdict.outcome] += 1
        self._skipped += skipped
        self._unreadable += item.verdict.code == READ_FAILED
        self._kept += kept
        self._tell(EventKind.SKIPPED if skipped else EventKind.SETTLED, item, kept=kept)

    def _tell(
        self, kind: EventKind, item: Item | None = None, *, count: int = 0, kept: bool = False
    ) -> None:
        source_id = self.job.source.source_id
        if item is None:
            self._watch(Event(kind, source_id, count=count))
            return
        said = item.verdict
        self._watch(
            Event(
                kind, source_id, item.key.native_id, said.outcome, said.code, said.error, kept=kept
            )
        )

    def _say_waiting(self) -> None:
        self._tell(EventKind.WAITING)

    def _fail(self, code: str, message: str) -> Failure:
        self._watch(Event(EventKind.FAILED, self.job.source.source_id, code=code, error=message))
        return Failure(code, message)

    def _report(self, run: Run, net: HttpNet, failure: Failure | None) -> SourceReport:
        return SourceReport(
            source_id=run.source_id,
            generation=run.generation,
            planned=self._planned,
            fetched=net.answers,
            kept=self._kept,
            skipped=self._skipped,
            unreadable=self._unreadable,
            outcomes=self._outcomes,
            failure=failure,
            resumed=run.resumed,
            stopped=self._stop.is_set(),
        )

    def _joined(self) -> SourceReport:
        """The report of a run that another process made while this one waited for its turn."""
        tenant, source_id, ledger = self.job.tenant, self.job.source.source_id, self._spool.ledger
        found = ledger.outcomes(tenant)
        outcomes = {outcome: n for (source, outcome), n in found.items() if source == source_id}
        generation = ledger.last_generation(tenant, source_id)
        return SourceReport(source_id, generation, outcomes=outcomes, joined=True)


async def _next(plan: AsyncIterator[Batch]) -> Batch | None:
    with foreign("plan"):
        return await anext(plan, None)
