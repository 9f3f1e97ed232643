"""Putting a run together: collect into the spool, send from it while that goes on, and report what it came to."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import structlog

from prw.errors import Code, PrwError
from prw_base.client import AT_A_PROMPT
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.collect import RunLimits, SourceJob, collect
from prw_sdk.fetch.browser import BrowserConfig
from prw_sdk.fetch.runtime import RuntimeFolderUnusable
from prw_sdk.report import (
    Event,
    EventKind,
    Failure,
    RunOutcome,
    SourceReport,
    Watch,
    summarise,
)
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import LOCAL_TENANT
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.uplink import Binding, Drained, ResolverAddress, Uplink
from prw_sdk.uplink.heartbeat import LEASE, resting

_log = structlog.get_logger(__name__)

UNFIT = (SettingsUnusable, RuntimeFolderUnusable)
"""What is wrong around a run and may be mended from outside while collectors go on."""


def refusal(unfit: Exception) -> PrwError:
    """The same as an error that a run is refused with; its words say what to do."""
    return PrwError(Code.VALIDATION_FAILED, str(unfit))


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to. `refused` is why sending stopped: what was kept is still in the spool."""

    sources: tuple[SourceReport, ...]
    drained: Drained = Drained()
    refused: PrwError | None = None

    @property
    def is_clean(self) -> bool:
        """Whether nothing waits for a later run or for a person."""
        return not self.drained.refused and all(report.is_clean for report in self.sources)

    @property
    def is_revoked(self) -> bool:
        """Whether the resolver has revoked the credential: nothing may go on then."""
        return self.refused is not None and self.refused.code is Code.CREDENTIAL_REVOKED


class Liveness:
    """Says that a long-running instance lives, in its runs and between them."""

    def __init__(self, resolver: ResolverAddress, spool: Spool) -> None:
        self._resolver = resolver
        self._spool = spool
        self._registered = asyncio.Event()
        self._lease = LEASE

    def registered(self, binding: Binding) -> None:
        """The instance is known to the resolver from now on."""
        self._lease = binding.lease
        self._registered.set()

    async def beat(self, stop: asyncio.Event) -> None:
        """A heartbeat every third of the lease, until `stop` (if_heartbeat). Raises `PrwError` CREDENTIAL_REVOKED.

        One that cannot be made is told in the log, and the next one is made when it is due.
        """
        await self._registered.wait()
        async with Uplink(self._resolver, self._spool, long_running=True) as uplink:
            while not await resting(self._lease / 3, stop):
                try:
                    await uplink.heartbeat()
                except Exception as broken:
                    if isinstance(broken, PrwError) and broken.code is Code.CREDENTIAL_REVOKED:
                        raise
                    _log.warning("a heartbeat could not be made", said=str(broken))


@dataclass(frozen=True, slots=True)
class Way:
    """How a run is made.

    `ephemeral` collectors keep nothing: checkpoints are the resolver's, and nothing is passed that is not submitted.
    Those with a `liveness` are long-running. `stop` ends a run in order.
    """

    ephemeral: bool = False
    liveness: Liveness | None = None
    browser: BrowserConfig | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)


@contextmanager
def stopping(stop: asyncio.Event) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM end the run in order; a second one ends it at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def first() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def run_local(
    jobs: Sequence[SourceJob],
    spool: Spool,
    limits: RunLimits,
    watch: Watch,
    way: Way | None = None,
) -> RunResult:
    """Collect into a spool that nothing drains yet."""
    way = way or Way()
    reports = await collect(jobs, spool, limits, watch=watch, stop=way.stop, browser=way.browser)
    return RunResult(reports)


async def run_sending(
    jobs: Sequence[SourceJob],
    spool: Spool,
    limits: RunLimits,
    resolver: ResolverAddress,
    watch: Watch,
    way: Way | None = None,
) -> RunResult:
    """Collect, and send while collecting, until everything kept is submitted; then report the run.

    Raises `PrwError` where the resolver does not register this collector: nothing is fetched then. A source that it
    does not grant is left out, and the others go on.
    """
    way, started = way or Way(), datetime.now(UTC)
    tally = _Submitted(watch)
    async with Uplink(resolver, spool, tally, long_running=way.liveness is not None) as uplink:
        binding = await _register(uplink, spool, jobs)
        if way.liveness is not None:
            way.liveness.registered(binding)
        run = _Sending(uplink, binding, spool, limits, tally, way)
        try:
            result = await run.go(jobs)
        except SpoolUnusable as unusable:
            await _report_unusable(uplink, started, unusable)
            raise
        result = replace(result, drained=uplink.total)
        summary = summarise(
            result.sources, tally.counts, started, datetime.now(UTC), result.refused
        )
        if result.is_revoked:
            return result
        try:
            await uplink.heartbeat(summary)
        except PrwError as revoked:
            return replace(result, refused=revoked)
        except UNFIT as unfit:
            # it is also why nothing more could be sent, whatever the transport made of it
            return replace(result, refused=refusal(unfit))
        return result


async def _report_unusable(uplink: Uplink, started: datetime, unusable: SpoolUnusable) -> None:
    """Tell the resolver of a run that its disk has ended; whatever hinders that is no news beside it."""
    trouble = PrwError(Code.STORAGE_UNAVAILABLE, str(unusable))
    summary = summarise((), {}, started, datetime.now(UTC), trouble)
    with suppress(PrwError, SpoolUnusable, *UNFIT):
        await uplink.heartbeat(replace(summary, outcome=RunOutcome.FAILED))


class _Submitted:
    """Counts what was submitted, source by source."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.counts: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        self.counts[event.source_id] += event.kind is EventKind.SUBMITTED
        self._watch(event)


class _Sending:
    """One run that sends while it collects."""

    def __init__(
        self,
        uplink: Uplink,
        binding: Binding,
        spool: Spool,
        limits: RunLimits,
        watch: Watch,
        way: Way,
    ) -> None:
        self._uplink = uplink
        self._binding = binding
        self._spool = spool
        self._limits = limits
        self._watch = watch
        self._way = way
        self._more, self._ended = asyncio.Event(), asyncio.Event()
        self._checkpoints = uplink.checkpoints() if way.ephemeral else None

    async def go(self, jobs: Sequence[SourceJob]) -> RunResult:
        granted = [job for job in jobs if job.source.source_id not in self._binding.denied]
        sending = asyncio.create_task(self._uplink.follow(self._more, self._ended))
        sending.add_done_callback(self._stop_when_denied)
        try:
            reports = await collect(
                granted,
                self._spool,
                self._limits,
                watch=self._waking,
                stop=self._way.stop,
                checkpoints=self._checkpoints,
                browser=self._way.browser,
            )
        except BaseException:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            raise
        self._ended.set()
        self._more.set()
        return await self._result((*reports, *_left_out(self._binding)), sending)

    async def _result(
        self, reports: tuple[SourceReport, ...], sending: asyncio.Task[None]
    ) -> RunResult:
        try:
            await sending
            if self._checkpoints is not None:
                await self._checkpoints.settle()
        except PrwError as refused:
            return RunResult(reports, refused=refused)
        except UNFIT as unfit:
            return RunResult(reports, refused=refusal(unfit))
        return RunResult(reports)

    def _stop_when_denied(self, task: asyncio.Task[None]) -> None:
        """A revoked collector has no business at the sources either; one that is only offline has."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, PrwError) and not error.retryable:
            self._way.stop.set()

    def _waking(self, event: Event) -> None:
        self._watch(event)
        kept = event.kind is EventKind.SETTLED and event.kept
        # the end of a run may let captures go that were held until then
        if kept or event.kind is EventKind.ENDED:
            self._more.set()


def _left_out(binding: Binding) -> Iterator[SourceReport]:
    for source_id, error in binding.denied.items():
        yield SourceReport(source_id, 0, failure=Failure(error.code.value, error.message))


async def _register(uplink: Uplink, spool: Spool, jobs: Sequence[SourceJob]) -> Binding:
    sources = [job.source.source_id for job in jobs]
    binding = await uplink.register(sources, jobs[0].region, jobs[0].egress)
    await asyncio.to_thread(check_tenant, {job.tenant for job in jobs}, binding, spool)
    return binding


def check_tenant(tenants: set[str], binding: Binding, spool: Spool) -> None:
    """Refuse to send one tenant's captures with another tenant's credential, or one spool to two tenants."""
    named = tenants - {LOCAL_TENANT, binding.tenant_id}
    if named:
        raise _other_tenant(f"the settings say tenant {', '.join(sorted(named))}", binding)
    for tenant in tenants:
        bound = spool.ledger.bind(tenant, binding.tenant_id, datetime.now(UTC))
        if bound != binding.tenant_id:
            raise _other_tenant(f"captures of this spool were sent to tenant {bound}", binding)


def _other_tenant(words: str, binding: Binding) -> PrwError:
    return PrwError(
        Code.TENANT_SCOPE_DENIED,
        f"{words}, the credential is of {binding.tenant_id}",
        field="tenant",
    )


async def push(spool: Spool, resolver: ResolverAddress, watch: Watch) -> Drained:
    """Send what a spool holds, and its checkpoints after it; raises `PrwError` when sending must stop."""
    states = await asyncio.to_thread(spool.ledger.kept_sources)
    if not states:
        return Drained()
    async with Uplink(resolver, spool, watch) as uplink:
        binding = await uplink.register([source for _, source in states])
        await asyncio.to_thread(check_tenant, {tenant for tenant, _ in states}, binding, spool)
        drained = await uplink.drain()
        await uplink.sync_checkpoints(states)
        return drained


async def ask_receipts(spool: Spool, resolver: ResolverAddress) -> int:
    """Ask the resolver what became of what was submitted, as often as it may be asked; how many were asked for."""
    async with Uplink(replace(resolver, retry=AT_A_PROMPT), spool) as uplink:
        return await uplink.ask_receipts(datetime.now(UTC))
