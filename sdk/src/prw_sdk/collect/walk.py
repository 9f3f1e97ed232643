"""From a plan to settled targets: batches are planned ahead, fetched with bounded concurrency, and passed in order.

The plan runs ahead of the fetching by a bounded number of batches, so that no place is idle at the end of one. A
batch is passed, and its checkpoint advanced, only when it and every batch before it are settled (replay rule 4).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from prw_sdk.adapter import Batch, Target
from prw_sdk.spool.model import Item

_AHEAD = 2
"""Batches that are planned before their turn."""

_UNPASSED = 16
"""Batches on their way that are not passed yet."""

_LOOKED_UP = 200
"""Targets whose rows are read at once."""


@dataclass(slots=True)
class _Open:
    """A batch on its way. `left` counts targets that are not settled, `is_cut` says that some never will be."""

    batch: Batch
    left: int
    is_cut: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def settle(self, *, cut: bool = False) -> None:
        """One target is out of the way."""
        self.left -= 1
        self.is_cut = self.is_cut or cut
        if self.left <= 0:
            self.done.set()


@dataclass(frozen=True, slots=True)
class Steps:
    """What a walk does on its way; what any of it raises ends the walk.

    `planned` is told of each batch as it comes, `find` reads the rows of some targets, `settle` brings one target to
    its verdict, `passed` is called for each batch once everything up to it is settled.
    """

    planned: Callable[[Batch], None]
    find: Callable[[Sequence[Target]], Awaitable[Sequence[Item | None]]]
    settle: Callable[[Target, Item | None], Awaitable[None]]
    passed: Callable[[Batch], Awaitable[None]]


_Job = tuple[Target, Item | None, _Open]


class Walk:
    """One walk over batches, with `workers` targets on their way at most."""

    def __init__(self, steps: Steps, workers: int, is_over: Callable[[], bool]) -> None:
        self._steps = steps
        self._workers = workers
        self._is_over = is_over
        self._failed: Exception | None = None
        self._plan_failed: Exception | None = None
        self._planned: asyncio.Queue[Batch | None] = asyncio.Queue(_AHEAD)
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue(workers)
        self._opened: asyncio.Queue[_Open | None] = asyncio.Queue(_UNPASSED)

    async def over(self, batches: AsyncIterator[Batch]) -> None:
        """Walk to the end of the batches, or until it is over.

        What the plan or the passing of a batch raises is raised once everything in flight is settled; an error of
        settling ends the walk at once.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._plan(batches))
            group.create_task(self._feed())
            group.create_task(self._pass_on())
            for _ in range(self._workers):
                group.create_task(self._work())
        failed = self._failed or self._plan_failed
        if failed is not None:
            raise failed

    def _ends(self) -> bool:
        return self._failed is not None or self._is_over()

    async def _plan(self, batches: AsyncIterator[Batch]) -> None:
        try:
            while not self._ends() and (batch := await anext(batches, None)) is not None:
                self._steps.planned(batch)
                await self._planned.put(batch)
        except Exception as failed:  # noqa: BLE001 - raised once everything that was planned before is settled
            self._plan_failed = failed
        await self._planned.put(None)

    async def _feed(self) -> None:
        while (batch := await self._planned.get()) is not None:
            opened = _Open(batch, len(batch.targets))
            if not batch.targets:
                opened.done.set()
            await self._opened.put(opened)
            for at in range(0, len(batch.targets), _LOOKED_UP):
                await self._feed_some(batch.targets[at : at + _LOOKED_UP], opened)
        await self._opened.put(None)
        for _ in range(self._workers):
            await self._jobs.put(None)

    async def _feed_some(self, targets: Sequence[Target], opened: _Open) -> None:
        found = [None] * len(targets) if self._ends() else await self._steps.find(targets)
        for target, item in zip(targets, found, strict=True):
            if self._ends():
                opened.settle(cut=True)
            else:
                await self._jobs.put((target, item, opened))

    async def _work(self) -> None:
        while (job := await self._jobs.get()) is not None:
            target, found, opened = job
            if self._ends():
                opened.settle(cut=True)
                continue
            await self._steps.settle(target, found)
            opened.settle()

    async def _pass_on(self) -> None:
        while (opened := await self._opened.get()) is not None:
            await opened.done.wait()
            if opened.is_cut or self._failed is not None:
                continue
            try:
                await self._steps.passed(opened.batch)
            except Exception as failed:  # noqa: BLE001 - raised once everything in flight is settled
                self._failed = failed
