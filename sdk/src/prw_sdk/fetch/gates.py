"""The turn at a host: a place among those that are there at once, and a moment that keeps its rate (rule 12).

Both are the host's, whatever the number of sources, runs and processes on this machine that ask it (`places`).
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from prw_sdk.fetch.places import HostPlaces, now
from prw_sdk.fetch.runtime import default_folder, secured

# all in seconds
_POLL = (0.002, 0.012)
_BRIEF = 0.001
_TRIES = 1000
_KEEP = 0.05
_LOOK = 0.01
_SPAN = 0.01


@dataclass(frozen=True, slots=True)
class Politeness:
    """Limits for each host: requests a second, requests at once, the longest crawl delay and pause followed (seconds).

    A pause is what a host asks for with Retry-After. An infinite rate (`math.inf`) spaces nothing, for a server of
    one's own.
    """

    rate_per_second: float = 2.0
    concurrency: int = 2
    max_crawl_delay: float = 60.0
    longest_pause: float = 3600.0


class HostBusy(Exception):
    """A host has asked for a longer pause than the caller is ready to wait; `seconds` of it are left."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the host asked for a pause; {seconds:.0f} s of it are left")
        self.seconds = seconds


class _Gate:
    """The limits of one host, as this process takes part in them.

    A place is kept for a moment after its turn, and pauses are looked up every so often, since a process that asks a
    server of its own for thousands of pages a second would else spend its time on locks.
    """

    def __init__(self, manners: Politeness, places: HostPlaces) -> None:
        self.interval = 1.0 / manners.rate_per_second
        self._places = places
        self._kept: list[int] = []
        self._cooling: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self._closed_until = self._unwritten_until = 0.0
        self._open_checked_at = 0.0
        self._mine = self._mine_until = 0.0
        # in one process turns are given in the order in which they were asked for
        self.at_once = asyncio.Semaphore(manners.concurrency)

    async def place(self) -> int:
        """A place that no other process holds; whoever waits already comes first."""
        if self._kept:
            return self._kept.pop()
        if not self._places.is_wanted():
            found = self._places.take()
            if found is not None:
                return found
        self._places.begin_to_wait()
        try:
            while True:
                # before the first try too: whoever just gave a place back would else have it again at once
                await asyncio.sleep(random.uniform(*_POLL))  # noqa: S311  # no secret
                found = self._places.take()
                if found is not None:
                    return found
                self._places.still_waiting()
        finally:
            self._places.end_to_wait()

    def leave(self, place: int) -> None:
        """Give a place back: to the others if one of them waits, and soon in any case."""
        self._kept.append(place)
        present = now()
        if present - self._looked_at > _LOOK:
            self._looked_at = present
            if self._places.is_wanted():
                return self.cool()
        if self._cooling is None:
            self._cooling = asyncio.get_running_loop().call_later(_KEEP, self.cool)
        return None

    def cool(self) -> None:
        """Give back what is kept."""
        if self._cooling is not None:
            self._cooling.cancel()
            self._cooling = None
        while self._kept:
            self._places.leave(self._kept.pop())

    async def moment(self, patience: float) -> None:
        """Wait until the host may be asked: no pause, and the rate kept."""
        await self._reopened(patience)
        while self.interval and (wait := await self._reserved()) > 0:
            await asyncio.sleep(wait)
            if self.paused() <= 0:
                return
            await self._reopened(patience)

    def pause(self, seconds: float) -> None:
        """Close for that long, here at once and for the others as soon as none of them is just writing."""
        self._closed_until = max(self._closed_until, now() + seconds)
        for _ in range(_TRIES):
            if self._places.pause(seconds):
                return
        self._unwritten_until = self._closed_until

    def paused(self) -> float:
        """Seconds for which the host is closed."""
        present = now()
        if present - self._open_checked_at > _LOOK:
            self._open_checked_at = present
            # what is written counts, since an operator may have ended a pause
            self._closed_until = max(self._unwritten_until, present + self._places.paused())
        return self._closed_until - present

    async def _reopened(self, patience: float) -> None:
        while (left := self.paused()) > 0:
            if left > patience:
                raise HostBusy(left)
            await asyncio.sleep(left)

    async def _reserved(self) -> float:
        """Seconds until the next moment of ours. Where the rate is high they are taken several at a time."""
        while True:
            present = now()
            mine = max(self._mine, present)
            if mine + self.interval <= self._mine_until:
                self._mine = mine + self.interval
                return mine - present
            span = max(_SPAN // self.interval, 1.0) * self.interval
            wait = self._places.reserve(span)
            if wait is None:
                await asyncio.sleep(_BRIEF)
                continue
            self._mine = present + wait + self.interval
            self._mine_until = present + wait + span
            return wait


class Turn:
    """One turn at a host, as a context."""

    __slots__ = ("_gate", "_patience", "_place")

    def __init__(self, gate: _Gate, patience: float) -> None:
        self._gate = gate
        self._patience = patience
        self._place: int | None = None

    async def __aenter__(self) -> None:
        await self._gate.at_once.acquire()
        try:
            self._place = await self._gate.place()
            await self._gate.moment(self._patience)
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._place is not None:
            self._gate.leave(self._place)
            self._place = None
        self._gate.at_once.release()


def clear_pause(host: str, folder: Path | None = None) -> float:
    """End the pause that a host (``name`` or ``name:port``) asked for; how many seconds of it were left.

    Runs that go on see it before their next turn. Raises `RuntimeFolderUnusable`.
    """
    places = HostPlaces(secured(folder or default_folder()), host, 1)
    while (left := places.resume()) is None:
        time.sleep(_BRIEF)
    return left


class HostGates:
    """One gate a host, shared by every source of a run, and by all runs of this machine that use the same `folder`.

    `folder` is `runtime.default_folder` where it is None; raises `RuntimeFolderUnusable`.
    """

    def __init__(self, manners: Politeness, folder: Path | None = None) -> None:
        self._manners = manners
        self._folder = secured(folder or default_folder())
        self._gates: dict[str, _Gate] = {}

    def _gate(self, host: str) -> _Gate:
        found = self._gates.get(host)
        if found is None:
            places = HostPlaces(self._folder, host, self._manners.concurrency)
            found = self._gates[host] = _Gate(self._manners, places)
        return found

    def follow_crawl_delay(self, host: str, seconds: float) -> None:
        """Space requests to that host by its own crawl delay, where that is longer than ours."""
        gate = self._gate(host)
        gate.interval = max(gate.interval, min(seconds, self._manners.max_crawl_delay))

    def pause(self, host: str, seconds: float) -> float:
        """Ask that host nothing for so long, whichever of its pages said so, and whichever process asks.

        No longer than the manners say; gives the seconds of a pause that begins now, 0 where one was on already.
        """
        gate, heeded = self._gate(host), min(seconds, self._manners.longest_pause)
        begins = gate.paused() <= 0
        gate.pause(heeded)
        return heeded if begins else 0.0

    def close(self) -> None:
        """Give every place back that is still kept; at the end of a run."""
        for gate in self._gates.values():
            gate.cool()

    def turn(self, host: str, patience: float = math.inf) -> Turn:
        """Wait for a turn at that host, and hold one of its places: ``async with gates.turn(host):``.

        Raises `HostBusy` where the host has asked for a pause of more than `patience` seconds.
        """
        return Turn(self._gate(host), patience)
