"""Putting a run together: collect into the spool, and send from it while that goes on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from prw.errors import Code, PrwError
from prw_sdk.collect import RunLimits, SourceJob, collect
from prw_sdk.report import Event, EventKind, SourceReport, Watch
from prw_sdk.spool.folder import Spool
from prw_sdk.uplink import Binding, Drained, ResolverAddress, Uplink


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
    jobs: Sequence[SourceJob], spool: Spool, limits: RunLimits, watch: Watch
) -> RunResult:
    """Collect into a spool that nothing drains yet."""
    stop = asyncio.Event()
    with stopping(stop):
        return RunResult(await collect(jobs, spool, limits, watch=watch, stop=stop))


async def run_sending(
    jobs: Sequence[SourceJob],
    spool: Spool,
    limits: RunLimits,
    resolver: ResolverAddress,
    watch: Watch,
) -> RunResult:
    """Collect, and send while collecting, until everything kept is submitted.

    Raises `PrwError` where the resolver does not register this collector: nothing is fetched then.
    """
    stop, more, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with Uplink(resolver, spool, watch) as uplink:
        await _register(uplink, jobs)
        with stopping(stop):
            sending = asyncio.create_task(uplink.follow(more, ended))
            sending.add_done_callback(_stop_when_denied(stop))
            try:
                reports = await collect(jobs, spool, limits, watch=_waking(watch, more), stop=stop)
            finally:
                ended.set()
                more.set()
            return await _result(reports, sending)


def _stop_when_denied(stop: asyncio.Event) -> Callable[[asyncio.Task[Drained]], None]:
    """A revoked collector has no business at the sources either; one that is only offline has."""

    def look(sending: asyncio.Task[Drained]) -> None:
        error = None if sending.cancelled() else sending.exception()
        if isinstance(error, PrwError) and not error.retryable:
            stop.set()

    return look


async def _result(reports: tuple[SourceReport, ...], sending: asyncio.Task[Drained]) -> RunResult:
    try:
        return RunResult(reports, await sending)
    except PrwError as refused:
        return RunResult(reports, refused=refused)


def _waking(watch: Watch, more: asyncio.Event) -> Watch:
    def told(event: Event) -> None:
        watch(event)
        if event.kind is EventKind.SETTLED and event.kept:
            more.set()

    return told


async def _register(uplink: Uplink, jobs: Sequence[SourceJob]) -> Binding:
    sources = [job.source.source_id for job in jobs]
    binding = await uplink.register(sources, jobs[0].region, jobs[0].egress)
    check_tenant({job.tenant for job in jobs}, binding)
    return binding


def check_tenant(tenants: set[str], binding: Binding) -> None:
    """Refuse to send one tenant's captures with another tenant's credential."""
    named = tenants - {"local", binding.tenant_id}
    if named:
        raise PrwError(
            Code.TENANT_SCOPE_DENIED,
            f"the settings say tenant {', '.join(sorted(named))}, "
            f"the credential is of {binding.tenant_id}",
            field="tenant",
        )


async def push(spool: Spool, resolver: ResolverAddress, watch: Watch) -> Drained:
    """Send what a spool holds; raises `PrwError` when sending must stop."""
    states = await asyncio.to_thread(spool.ledger.kept_sources)
    if not states:
        return Drained()
    async with Uplink(resolver, spool, watch) as uplink:
        binding = await uplink.register([source for _, source in states])
        check_tenant({tenant for tenant, _ in states}, binding)
        return await uplink.drain()
