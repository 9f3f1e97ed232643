"""Good manners: robots.txt (RFC 9309), a rate and a concurrency for each host, and an honest name."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from urllib.parse import urlsplit

from aiolimiter import AsyncLimiter
from protego import Protego

from prw_sdk.fetch.outcome import FetchFailed, Outcome

PRODUCT = "PRW-collector"
ROBOTS_LIMIT = 500 * 1024


def user_agent(contact: str) -> str:
    """The name that sources see: product, version, and whom to ask."""
    return f"{PRODUCT}/{version('prw-sdk')} (+{contact})"


@dataclass(frozen=True, slots=True)
class Politeness:
    """Limits for each host: requests a second, requests at once, and the longest crawl delay followed (seconds)."""

    rate_per_second: float = 2.0
    concurrency: int = 2
    max_crawl_delay: float = 60.0


class _Gate:
    def __init__(self, manners: Politeness) -> None:
        self.interval = 1.0 / manners.rate_per_second
        self.limiter = AsyncLimiter(1, self.interval)
        self.at_once = asyncio.Semaphore(manners.concurrency)
        self.closed_until = 0.0

    def slow_down(self, seconds: float) -> None:
        if seconds > self.interval:
            self.interval = seconds
            self.limiter = AsyncLimiter(1, seconds)

    async def reopened(self, patience: float) -> None:
        while (left := self.closed_until - time.monotonic()) > 0:
            if left > patience:
                raise HostBusy(left)
            await asyncio.sleep(left)


class HostBusy(Exception):
    """A host has asked for a longer pause than the caller is ready to wait; `seconds` of it are left."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the host asked for a pause; {seconds:.0f} s of it are left")
        self.seconds = seconds


class HostGates:
    """One gate a host, shared by every source of a run, so that two sources at one host stay within its limits."""

    def __init__(self, manners: Politeness) -> None:
        self._manners = manners
        self._gates: dict[str, _Gate] = {}

    def _gate(self, host: str) -> _Gate:
        return self._gates.setdefault(host, _Gate(self._manners))

    def follow_crawl_delay(self, host: str, seconds: float) -> None:
        """Space requests to that host by its own crawl delay, where that is longer than ours."""
        self._gate(host).slow_down(min(seconds, self._manners.max_crawl_delay))

    def pause(self, host: str, seconds: float) -> None:
        """Ask that host nothing for so long, whichever of its pages said so."""
        gate = self._gate(host)
        gate.closed_until = max(gate.closed_until, time.monotonic() + seconds)

    @asynccontextmanager
    async def turn(self, host: str, patience: float = math.inf) -> AsyncIterator[None]:
        """Wait for a turn at that host, and hold one of its places.

        Raises `HostBusy` where the host has asked for a pause of more than `patience` seconds.
        """
        gate = self._gate(host)
        async with gate.at_once:
            await gate.reopened(patience)
            await gate.limiter.acquire()
            yield


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What asking for robots.txt gave: a status and a body, or None for no answer at all."""

    status: int | None
    body: bytes = b""


AskRobots = Callable[[str], Awaitable[RobotsAnswer]]


class Robots:
    """The robots rules of each origin, asked for once a run."""

    def __init__(self, ask: AskRobots, gates: HostGates) -> None:
        self._ask = ask
        self._gates = gates
        self._rules: dict[str, asyncio.Task[Protego | None]] = {}

    async def permit(self, url: str) -> None:
        """Return if the URL may be fetched; raises `FetchFailed` if rules forbid it or cannot be read."""
        parts = urlsplit(url)
        rules = await self._of(f"{parts.scheme}://{parts.netloc}", parts.netloc)
        if rules is None:
            # RFC 9309 section 2.3.1.4: unreachable rules are taken as forbidding everything, for now
            raise FetchFailed(Outcome.ROBOTS_UNREACHABLE, "robots.txt could not be read", url=url)
        if not rules.can_fetch(url, PRODUCT):
            raise FetchFailed(Outcome.ROBOTS_FORBIDDEN, "robots.txt forbids this address", url=url)

    async def _of(self, origin: str, host: str) -> Protego | None:
        if origin not in self._rules:
            self._rules[origin] = asyncio.create_task(self._load(origin, host))
        # shielded: one impatient caller must not cancel the answer that others wait for
        return await asyncio.shield(self._rules[origin])

    async def _load(self, origin: str, host: str) -> Protego | None:
        rules = parse(await self._ask(f"{origin}/robots.txt"))
        delay = None if rules is None else rules.crawl_delay(PRODUCT)
        if delay is not None:
            self._gates.follow_crawl_delay(host, delay)
        return rules


def parse(answer: RobotsAnswer) -> Protego | None:
    """The rules of an answer (RFC 9309 section 2.3.1); None when they are unreachable.

    A 4xx means that there are none. A 429 is the exception: a host that is out of breath has not said yes.
    """
    if answer.status is None or answer.status == 429 or answer.status >= 500:
        return None
    if 200 <= answer.status < 300:
        return Protego.parse(answer.body[:ROBOTS_LIMIT].decode("utf-8-sig", errors="replace"))
    return Protego.parse("")
