"""How often sources are run: once, or at intervals until somebody stops it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from prw.errors import Code, PrwError
from prw_base.client import AT_A_PROMPT
from prw_sdk import plugins
from prw_sdk.cli.run import (
    UNFIT,
    Liveness,
    RunResult,
    Way,
    refusal,
    run_local,
    run_sending,
    stopping,
)
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.cli.settings import CollectorSettings
from prw_sdk.collect import SourceJob
from prw_sdk.report import Event, EventKind, Watch
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CheckpointKey
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.uplink import ResolverAddress, Uplink
from prw_sdk.uplink.heartbeat import resting

PLUGIN_LEFT_OUT = "PLUGIN_LEFT_OUT"
_INTERVAL = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(days=366)
JITTER = 0.1
"""The share of the interval by which a run may begin later, so that many collectors do not begin together."""

Once = Callable[[asyncio.Event], Awaitable[RunResult]]
"""A run, which ends in order once the event is set."""


def interval(text: str) -> timedelta:
    """``90s``, ``15m``, ``2h`` or ``1d``, from a second to a year; raises ValueError."""
    found = _INTERVAL.fullmatch(text.strip())
    every = found and timedelta(**{_UNITS[found[2]]: int(found[1])})
    if not every or not _SHORTEST <= every <= _LONGEST:
        raise ValueError(f"--every: {text!r} is no interval: write 90s, 15m, 2h or 1d")
    return every


@dataclass(frozen=True, slots=True)
class Errand:
    """What `run` was asked for: `every` is None for once, `ephemeral` has a spool for the length of a run."""

    settings: CollectorSettings
    names: tuple[str, ...]
    local: Path | None = None
    every: timedelta | None = None
    ephemeral: bool = False

    async def go(self, watch: Watch, told: Callable[[RunResult], None]) -> RunResult:
        """Run once or at intervals, tell of each run, and give the last result."""
        stop = asyncio.Event()
        with stopping(stop), ExitStack() as stack:
            installed = plugins.load()
            _tell_left_out(installed, watch)
            jobs = self.settings.jobs(installed, self.names)
            spool = None if self.ephemeral else self._spool(stack)
            if self.every is None:
                result = await self._once(jobs, spool, watch, Way(stop=stop))
                told(result)
                return result
            liveness = None
            if self._address is not None:
                # an ephemeral collector has no receipts to ask for between its runs
                liveness = Liveness(self._address, spool or _for_now(stack))

            async def once(own: asyncio.Event) -> RunResult:
                return await self._once(jobs, spool, watch, Way(liveness=liveness, stop=own))

            return await at_intervals(once, self.every, stop, told, liveness)

    async def revive(self, native_id: str | None) -> int:
        """Give another chance to what the resolver keeps of a collector that keeps nothing; how many items."""
        address = self._address
        if address is None:
            raise SettingsUnusable("resolver: give its address, or the DIR of a spool")
        now, revived = datetime.now(UTC), 0
        with ExitStack() as stack:
            async with Uplink(replace(address, retry=AT_A_PROMPT), _for_now(stack)) as uplink:
                store = uplink.checkpoints()
                for job in self.settings.jobs(plugins.load(), self.names):
                    source_id, adapter = job.source.source_id, job.adapter.name
                    key = CheckpointKey(job.tenant, source_id, adapter)
                    revived += await store.revive(key, native_id, now)
        return revived

    @property
    def _address(self) -> ResolverAddress | None:
        resolver = self.settings.resolver
        return None if self.local is not None or resolver is None else resolver.to_address()

    def _spool(self, stack: ExitStack) -> Spool:
        spool = Spool(self.local or self.settings.spool)
        stack.callback(spool.close)
        return spool

    async def _once(
        self, jobs: Sequence[SourceJob], spool: Spool | None, watch: Watch, way: Way
    ) -> RunResult:
        way = replace(way, ephemeral=self.ephemeral, browser=self.settings.browser.to_config())
        limits, address = self.settings.limits(), self._address
        with ExitStack() as stack:
            spool = spool or _for_now(stack)
            if address is None:
                return await run_local(jobs, spool, limits, watch, way)
            return await run_sending(jobs, spool, limits, address, watch, way)


def _tell_left_out(installed: plugins.Plugins, watch: Watch) -> None:
    for problem in installed.problems:
        watch(Event(EventKind.LEFT_OUT, "", code=PLUGIN_LEFT_OUT, error=str(problem)))


def _for_now(stack: ExitStack) -> Spool:
    """A spool that is gone when the stack ends."""
    folder = stack.enter_context(TemporaryDirectory(prefix="prw-collect-"))
    spool = Spool(Path(folder) / "spool")
    stack.callback(spool.close)
    return spool


async def at_intervals(
    once: Once,
    every: timedelta,
    stop: asyncio.Event,
    told: Callable[[RunResult], None],
    liveness: Liveness | None = None,
    chance: Callable[[], float] = random.random,
) -> RunResult:
    """Run again and again, from one start to the next `every` and a jitter; the last result.

    A run that fails ends nothing, and is told like any other. A revoked credential ends everything, and so does `stop`,
    after what is in flight. Raises `SettingsUnusable` and `RuntimeFolderUnusable` where the first run meets them; a
    later one only fails, since a file that is put anew may be missing for a moment.
    """
    loop, begun = asyncio.get_running_loop(), False
    async with _alive(liveness, stop) as revoked:
        while True:
            began = loop.time()
            result = await _run(once, stop, is_first=not begun)
            begun = True
            result = RunResult(result.sources, result.drained, revoked()) if revoked() else result
            told(result)
            if result.is_revoked or stop.is_set():
                return result
            wait = every * (1 + JITTER * chance()) - timedelta(seconds=loop.time() - began)
            if await resting(max(wait, timedelta()), stop):
                return RunResult(result.sources, result.drained, revoked() or result.refused)


async def _run(once: Once, stop: asyncio.Event, *, is_first: bool) -> RunResult:
    """One run with a stop of its own, since a run that is denied stops itself."""
    own = asyncio.Event()

    async def forward() -> None:
        await stop.wait()
        own.set()

    forwarding = asyncio.create_task(forward())
    try:
        return await once(own)
    except PrwError as refused:
        return RunResult((), refused=refused)
    except SpoolUnusable as unusable:
        return RunResult((), refused=PrwError(Code.STORAGE_UNAVAILABLE, str(unusable)))
    except UNFIT as unfit:
        if is_first:
            raise
        return RunResult((), refused=refusal(unfit))
    finally:
        forwarding.cancel()


@asynccontextmanager
async def _alive(
    liveness: Liveness | None, stop: asyncio.Event
) -> AsyncIterator[Callable[[], PrwError | None]]:
    """Heartbeats meanwhile; gives a question whether one was answered with a revoked credential."""
    if liveness is None:
        yield lambda: None
        return
    beating = asyncio.create_task(liveness.beat(stop))
    beating.add_done_callback(lambda task: stop.set() if _error(task) else None)
    try:
        yield lambda: _error(beating)
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


def _error(task: asyncio.Task[None]) -> PrwError | None:
    error = task.exception() if task.done() and not task.cancelled() else None
    return error if isinstance(error, PrwError) else None
