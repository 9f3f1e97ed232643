"""The run: plan, fetch, keep, and advance the checkpoint last.

An item is passed only when its outcome is in the ledger: terminal, or put off durably. A crash
anywhere, a second run over the same spool, or two runs at once end in the same state as one clean run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from prw.errors import PrwError
from prw_base.faults import fault
from prw_sdk.adapter import Batch, Target
from prw_sdk.collect.attempt import ADAPTER_ERROR, Maker
from prw_sdk.collect.book import Judgement, has_records, judge, may_be_empty
from prw_sdk.collect.checkpoints import CheckpointStore
from prw_sdk.collect.job import Means, RunLimits, SourceJob
from prw_sdk.collect.progress import Progress
from prw_sdk.collect.reading import AdapterFailed, foreign
from prw_sdk.collect.returned import batch_of
from prw_sdk.collect.settle import Settler
from prw_sdk.collect.telling import Telling
from prw_sdk.collect.walk import Steps, Walk
from prw_sdk.fetch.browser import Browser, BrowserConfig
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed
from prw_sdk.fetch.polite import HostGates
from prw_sdk.report import EventKind, Failure, SourceReport, Watch, unwatched
from prw_sdk.spool.folder import Spool, TurnGivenUp
from prw_sdk.spool.model import Run, RunEnd, RunProfile
from prw_sdk.spool.sqlite import SpoolUnusable

ASSERTION_BREACHED = "ASSERTION_BREACHED"
FOUND_NOTHING = "FOUND_NOTHING"


_MOST_VANISHED = 500
"""Items that one run asks for although its plan does not name them."""


async def collect(
    jobs: Sequence[SourceJob],
    spool: Spool,
    limits: RunLimits,
    *,
    watch: Watch = unwatched,
    stop: asyncio.Event | None = None,
    checkpoints: CheckpointStore | None = None,
    browser: BrowserConfig | None = None,
) -> tuple[SourceReport, ...]:
    """Run every source at once into the spool; one report each, in the order given.

    One browser opens the pages of all adapters that use one. Checkpoints are the spool's unless they are elsewhere.

    Once `stop` is set nothing new is begun, and what is in flight is finished. Raises `SpoolUnusable` where the spool
    cannot be written: the runs are unfinished then, and a later one takes them up.
    """
    gates = HostGates(limits.manners)
    stop = stop or asyncio.Event()
    means = Means.over(spool, checkpoints)
    runs = [SourceRun(job, means, limits, watch, stop) for job in jobs]
    try:
        async with Browser(browser) as pages, asyncio.TaskGroup() as group:
            tasks = [group.create_task(_with_net(run, gates, pages)) for run in runs]
    except BaseExceptionGroup as several:
        unusable, other = several.split(SpoolUnusable)
        if unusable is None or other is not None:
            raise
        raise _first(unusable) from several
    finally:
        try:
            await means.keeper.idle()
        finally:
            means.keeper.close()
            gates.close()
    return tuple(task.result() for task in tasks)


def _first(several: BaseExceptionGroup[SpoolUnusable]) -> SpoolUnusable:
    one: BaseException = several
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    return SpoolUnusable(str(one))


async def _with_net(run: SourceRun, gates: HostGates, browser: Browser) -> SourceReport:
    pages = browser if run.job.adapter.uses_browser else None
    net = HttpNet(run.job.net, gates, browser=pages, paused=run.say_paused)
    try:
        return await run.go(net)
    finally:
        await net.aclose()


class SourceRun:
    """One run of one source."""

    def __init__(
        self,
        job: SourceJob,
        means: Means,
        limits: RunLimits,
        watch: Watch = unwatched,
        stop: asyncio.Event | None = None,
    ) -> None:
        self.job = job
        self._means = means
        self._limits = limits
        self._telling = Telling(job.source.source_id, watch)
        self._stop = stop or asyncio.Event()

    async def go(self, net: HttpNet) -> SourceReport:
        """Run the source to its end, to a failure of its plan, or until it is stopped."""
        try:
            return await self._in_turn(net)
        except TurnGivenUp:
            return SourceReport(self.job.source.source_id, 0, stopped=True)

    async def _in_turn(self, net: HttpNet) -> SourceReport:
        tenant, source_id, spool = self.job.tenant, self.job.source.source_id, self._means.spool
        async with spool.turn(tenant, source_id, self._say_waiting, self._stop) as waited:
            if waited and not spool.ledger.is_unfinished(tenant, source_id):
                return self._joined()
            run = spool.ledger.begin_run(tenant, source_id, self._means.clock())
            self._telling.say(EventKind.STARTED)
            report = await self._through(run, net)
            self._telling.say(EventKind.ENDED)
            return report

    def say_paused(self, host: str, asked: float, heeded: float) -> None:
        """A host has asked for a pause."""
        self._telling.pause(host, asked, heeded)

    def _say_waiting(self) -> None:
        self._telling.say(EventKind.WAITING)

    async def _through(self, run: Run, net: HttpNet) -> SourceReport:
        settler = Settler(self.job, self._means, self._limits, run, self._telling)
        held = self.job.holds_back
        progress = Progress(self._means, run, self.job.adapter.name, holds=held)
        failure = await self._walk(run, settler, progress, net)
        report = replace(self._telling.report(run, net.answers), failure=failure)
        if self._stop.is_set():
            records = settler.book.profile().records
            return replace(report, records=records, stopped=True)
        judged = self._judge(run, settler, progress, report)
        if any(breach.is_failure for breach in judged.breaches):
            return judged
        return await self._confirmed(progress, judged)

    async def _confirmed(self, progress: Progress, report: SourceReport) -> SourceReport:
        """Move checkpoints whose captures were held until now. Where that fails the next run finds them unchanged."""
        try:
            if await progress.confirm():
                self._telling.say(EventKind.CHECKPOINT)
        except PrwError as refused:
            return replace(report, failure=self._telling.fail(refused.code.value, refused.message))
        return report

    async def _walk(
        self, run: Run, settler: Settler, progress: Progress, net: HttpNet
    ) -> Failure | None:
        """Everything between the start and the end of a run; why it ended early, if it did."""
        try:
            Maker(self.job.source, self.job.adapter).config()
            start = await progress.start()
            await self._take_up_due(run, settler, net)
            with foreign("plan"):
                plan = self.job.adapter.plan(self.job.source, start, net)
            await self._take(_planned(plan), settler, progress, net)
            await self._ask_for_the_vanished(run, settler, net)
            await progress.finish()
        except FetchFailed as failed:
            return self._telling.fail(failed.code, f"{failed.url}: {failed.message}")
        except AdapterFailed as broken:
            return self._telling.fail(ADAPTER_ERROR, self.job.net.redactor().text(str(broken)))
        except PrwError as refused:
            return self._telling.fail(refused.code.value, refused.message)
        return None

    async def _take_up_due(self, run: Run, settler: Settler, net: HttpNet) -> None:
        ledger = self._means.spool.ledger
        while not self._stop.is_set():
            due = ledger.due(run.tenant, run.source_id, self._means.clock())
            if not due:
                return
            targets = tuple(Target(item.key.native_id, item.url) for item in due)
            await self._take(_only(Batch(targets)), settler, None, net)

    async def _ask_for_the_vanished(self, run: Run, settler: Settler, net: HttpNet) -> None:
        """Ask for what a whole plan names no more, a bounded number a run: its 404 is the source's own word."""
        whole = self.job.adapter.lists_everything and self._telling.planned > 0
        if not whole or self._stop.is_set():
            return
        gone = await asyncio.to_thread(self._means.spool.ledger.vanished, run, _MOST_VANISHED)
        if gone:
            targets = tuple(Target(item.key.native_id, item.url) for item in gone)
            await self._take(_only(Batch(targets)), settler, None, net)

    async def _take(
        self,
        batches: AsyncIterator[Batch],
        settler: Settler,
        progress: Progress | None,
        net: HttpNet,
    ) -> None:
        async def passed(batch: Batch) -> None:
            if batch.then is None or progress is None:
                return
            if await progress.advance(batch.then):
                self._telling.say(EventKind.CHECKPOINT)

        steps = Steps(
            planned=lambda batch: self._telling.plan(len(batch.targets)),
            find=settler.find,
            settle=lambda target, found: settler.settle(target, found, net),
            passed=passed,
        )
        await Walk(steps, 2 * self._limits.concurrency, self._stop.is_set).over(batches)

    def _judge(
        self, run: Run, settler: Settler, progress: Progress, report: SourceReport
    ) -> SourceReport:
        """Hold the run against what it must come to, and end it."""
        ledger, adapter = self._means.spool.ledger, self.job.adapter
        before = ledger.profile(run.tenant, run.source_id, adapter.name)
        found = judge(adapter, self.job.all_bounds, before, settler.book.profile())
        self._telling.judgement(found)
        is_known = self._means.checkpoints.keeps_deferred or has_records(before)
        failure = report.failure or self._shortfall(found, progress.continues and is_known)
        keep = found.keep if failure is None else None
        profile = None
        if keep is not None:
            profile = RunProfile(adapter.name, adapter.version, keep.as_json())
        end = RunEnd(
            planned=report.planned,
            code=None if failure is None else failure.code,
            release=not found.failures,
            profile=profile,
        )
        fault("collect.before_finish")
        ledger.finish_run(run, self._means.clock(), end)
        held = ledger.held(run) if self.job.holds_back else 0
        return replace(
            report,
            failure=failure,
            records=found.profile.records,
            held=held,
            changes=found.changes,
            breaches=found.breaches,
        )

    def _shortfall(self, found: Judgement, continues: bool) -> Failure | None:
        """Why a run that went to its end is a failure all the same.

        One that `continues` what an earlier one has found may find nothing new, unless its adapter lists everything.
        """
        if found.failures:
            said = "; ".join(str(breach) for breach in found.failures)
            return self._telling.fail(ASSERTION_BREACHED, f"{said}: nothing of this run is sent")
        allowed = self.job.may_be_empty or may_be_empty(self.job.all_bounds)
        nothing_new = not self._telling.planned and not self.job.adapter.lists_everything
        if allowed or (continues and nothing_new) or found.profile.records or self._telling.waits:
            return None
        what = "no record was read" if self._telling.planned else "nothing was planned"
        return self._telling.fail(
            FOUND_NOTHING, f"{what}; set may_be_empty for a source where that is as it should be"
        )

    def _joined(self) -> SourceReport:
        """The report of a run that another process made while this one waited for its turn."""
        tenant, source_id = self.job.tenant, self.job.source.source_id
        ledger = self._means.spool.ledger
        found = ledger.outcomes(tenant)
        outcomes = {outcome: n for (source, outcome), n in found.items() if source == source_id}
        generation = ledger.last_generation(tenant, source_id)
        return SourceReport(source_id, generation, outcomes=outcomes, joined=True)


async def _planned(plan: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
    while True:
        with foreign("plan"):
            batch = await anext(plan, None)
        if batch is None:
            return
        fault("collect.after_plan")
        yield batch_of(batch)


async def _only(batch: Batch) -> AsyncIterator[Batch]:
    yield batch
