"""Killing programs by SIGKILL at the fault points of the code, chosen by a seed."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.programs import KILLED, Program

SEED_VARIABLE = "PRW_SEED"
DEFAULT_SEED = 20

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("base", "sdk", "resolver", "product")
_POINT = re.compile(r"\bfault\(\"([a-z0-9_]+)\.([a-z0-9_]+)\"\)")

_RUNS_IN = {
    "collect": "collector",
    "uplink": "collector",
    "intake": "resolver",
    "checkpoints": "resolver",
    "objects": "resolver",
    "worker": "resolver",
    "stream": "resolver",
    "apply": "product",
    "follow": "product",
}
"""In which program each room's points are passed."""

IDLE = frozenset(
    {"collect.before_checkpoint", "collect.after_checkpoint", "uplink.after_advance"}
    | {"checkpoints.before_commit", "checkpoints.after_commit"}
)
"""Points that this walk never passes: a plan from sitemaps has no checkpoints."""

ELSEWHERE = frozenset({"export", "rebuild"})
"""Rooms that this walk never enters; their points are struck in the tests of their own."""


def points(program: str) -> tuple[str, ...]:
    """Every point that a program passes on this walk, as they stand in the code."""
    return tuple(sorted(name for name, runs_in in _points() if runs_in == program))


def _points() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        for module in (_ROOT / package / "src").rglob("*.py"):
            for room, where in _POINT.findall(module.read_text("utf-8")):
                if room not in ELSEWHERE and f"{room}.{where}" not in IDLE:
                    yield f"{room}.{where}", _RUNS_IN[room]


def seed() -> int:
    """What the choices come from: PRW_SEED, or always the same."""
    chosen = int(os.environ.get(SEED_VARIABLE) or DEFAULT_SEED)
    sys.stdout.write(f"chosen by seed {chosen}; {SEED_VARIABLE}={chosen} chooses the same again\n")
    return chosen


def choose(program: str, count: int, most_hits: int, choice: random.Random) -> tuple[str, ...]:
    """So many kills of a program, each at the first to the `most_hits`-th hit of a point, no point again before all.

    In the order of the rooms along the walk, since what has come in cannot be killed on its way in.
    """
    known = points(program)
    rounds = [choice.sample(known, len(known)) for _ in range(-(-count // len(known)))]
    named = [point for one in rounds for point in one][:count]
    named.sort(key=lambda point: list(_RUNS_IN).index(point.partition(".")[0]))
    return tuple(f"{point}=kill@{choice.randint(1, most_hits)}" for point in named)


class Kills:
    """Restarts a program with the next kill armed whenever one has struck."""

    def __init__(self, program: Program, armed: Iterable[str]) -> None:
        self._program = program
        self._armed = tuple(armed)
        self._enough = asyncio.Event()
        self.struck: list[str] = []

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Kill it while the block goes on; afterwards it is up again with nothing armed."""
        striking = asyncio.create_task(self._strike())
        try:
            yield
        finally:
            self._enough.set()
            await striking
        await self._program.kill()
        assert await self._program.start()

    async def _strike(self) -> None:
        await self._program.kill()
        for fault in self._armed:
            if self._enough.is_set():
                return
            if await self._program.start(fault) and not await self._was_killed():
                return
            self.struck.append(fault)
        assert await self._program.start()

    async def _was_killed(self) -> bool:
        ends = [
            asyncio.create_task(self._program.ended()),
            asyncio.create_task(self._enough.wait()),
        ]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        killed = ends[0].done()
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        assert not killed or await self._program.ended() == KILLED
        return killed
