"""Putting a run together: collect into the spool, and send from it while that goes on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from prw.errors import Code, PrwError
from prw_base.client import AT_A_PROMPT
from prw_sdk.collect import RunLimits, SourceJob, collect
from prw_sdk.report import Event, EventKind, Failure, SourceReport, Watch
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import LOCAL_TENANT
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

    Raises `PrwError` where the resolver does not register this collector: nothing is fetched then. A source that it
    does not grant is left out, and the others go on.
    """
    stop, more, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with Uplink(resolver, spool, watch) as uplink:
        binding = await _register(uplink, spool, jobs)
        granted = [job for job in jobs if job.source.source_id not in binding.denied]
        with stopping(stop):
            sending = asyncio.create_task(uplink.follow(more, ended))
            sending.add_done_callback(_stop_when_denied(stop))
            try:
                reports = await collect(
                    granted, spool, limits, watch=_waking(watch, more), stop=stop
                )
            finally:
                ended.set()
                more.set()
            return await _result((*reports, *_left_out(binding)), sending)


def _left_out(binding: Binding) -> Iterator[SourceReport]:
    for source_id, error in binding.denied.items():
        yield SourceReport(source_id, 0, failure=Failure(error.code.value, error.message))


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
    """Send what a spool holds; raises `PrwError` when sending must stop."""
    states = await asyncio.to_thread(spool.ledger.kept_sources)
    if not states:
        return Drained()
    async with Uplink(resolver, spool, watch) as uplink:
        binding = await uplink.register([source for _, source in states])
        await asyncio.to_thread(check_tenant, {tenant for tenant, _ in states}, binding, spool)
        return await uplink.drain()


async def ask_receipts(spool: Spool, resolver: ResolverAddress) -> int:
    """Ask the resolver what became of what was submitted, as often as it may be asked; how many were asked for."""
    async with Uplink(replace(resolver, retry=AT_A_PROMPT), spool) as uplink:
        return await uplink.ask_receipts(datetime.now(UTC))
