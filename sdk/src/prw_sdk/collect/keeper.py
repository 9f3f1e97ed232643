"""Keeping what was fetched: many captures at once, on the disk before the ledger says so.

Whatever comes while one group is kept makes the next one. So a lone capture waits for nobody, and many share one
hop to a thread, one flush of each folder and one transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from prw_base.faults import fault
from prw_sdk.collect.reading import Reading
from prw_sdk.collect.threads import OwnThread
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import RunTally, Settling

_MOST = 32


class Book(Protocol):
    """What a run has read so far."""

    def count(self, reading: Reading) -> None:
        """Count one reading, whose verdict was given."""
        ...

    def row(self) -> RunTally:
        """Everything counted so far."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict about to be given, the bytes that its capture names, and what was read in them."""

    settling: Settling
    bodies: tuple[bytes, ...] = ()
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One target to judge and keep. `judge` runs in a thread, and may be slow."""

    judge: Callable[[], Judged]
    book: Book


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of one work; `applied` is False where somebody had settled the item meanwhile."""

    settling: Settling
    applied: bool


_Waiting = tuple[Work, asyncio.Future[Kept]]
_Ready = tuple[Work, Judged, asyncio.Future[Kept]]


class Keeper:
    """Keeps captures for all sources of a run. While one group is flushed, the next one is judged.

    Each book's works are judged in a thread of their own, so that a slow reader holds up its own source alone.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._threads: dict[int, OwnThread[list[Judged | Exception]]] = {}
        self._waiting: dict[int, list[_Waiting]] = {}
        self._ready: list[_Ready] = []
        self._judging: dict[int, asyncio.Task[None]] = {}
        self._keeping: asyncio.Task[None] | None = None

    async def keep(self, work: Work) -> Kept:
        """Judge and keep; returns once it is durable. Raises `SpoolUnusable`, and whatever `judge` raises."""
        future, book = asyncio.get_running_loop().create_future(), id(work.book)
        self._waiting.setdefault(book, []).append((work, future))
        if book not in self._judging or self._judging[book].done():
            self._judging[book] = asyncio.create_task(self._judge_all(book))
        kept: Kept = await future
        return kept

    async def idle(self) -> None:
        """Wait until nothing is being kept; what still waits is kept first."""
        for judging in list(self._judging.values()):
            await judging
        if self._keeping is not None:
            await self._keeping

    def close(self) -> None:
        """End the threads; to be called when it is idle."""
        while self._threads:
            self._threads.popitem()[1].close()

    async def _judge_all(self, book: int) -> None:
        thread = self._threads.get(book)
        if thread is None:
            thread = self._threads[book] = OwnThread("judge")
        while waiting := self._waiting.pop(book, None):
            group, rest = waiting[:_MOST], waiting[_MOST:]
            if rest:
                self._waiting[book] = rest
            works = [work for work, _ in group]
            judged = await thread.run(partial(_judged_all, works))
            for (work, future), one in zip(group, judged, strict=True):
                if isinstance(one, Judged):
                    self._ready.append((work, one, future))
                else:
                    _resolve(future, one)
            if self._ready and (self._keeping is None or self._keeping.done()):
                self._keeping = asyncio.create_task(self._keep_all())

    async def _keep_all(self) -> None:
        while self._ready:
            group, self._ready = self._ready[:_MOST], self._ready[_MOST:]
            fine = [(work, judged) for work, judged, _ in group]
            try:
                ends = await asyncio.to_thread(self._commit, fine)
            except Exception as error:  # noqa: BLE001 - it is raised where the work was given
                ends = [error] * len(group)
            for (_, _, future), end in zip(group, ends, strict=True):
                _resolve(future, end)

    def _commit(self, fine: Sequence[tuple[Work, Judged]]) -> list[Kept | Exception]:
        bodies = [body for _, one in fine for body in one.bodies]
        if bodies:
            self._spool.blobs.put_all(bodies)
        for _, one in fine:
            if one.settling.capture is not None:
                fault("collect.after_blob")
        try:
            return list(self._settle(fine))
        except sqlite3.IntegrityError as refused:
            # a bad member of a group fails alone
            if len(fine) == 1:
                return [refused]
            return [end for one in fine for end in self._commit([one])]

    def _settle(self, fine: Sequence[tuple[Work, Judged]]) -> Iterable[Kept]:
        settlings = [one.settling for _, one in fine]

        def tallies(applied: Sequence[bool]) -> list[RunTally]:
            return _counted(fine, applied)

        applied = self._spool.ledger.settle_all(settlings, tallies) if fine else []
        return map(Kept, settlings, applied)


def _judged_all(group: Sequence[Work]) -> list[Judged | Exception]:
    return [_judged(work) for work in group]


def _judged(work: Work) -> Judged | Exception:
    try:
        return work.judge()
    except Exception as error:  # noqa: BLE001 - it is raised where the work was given
        return error


def _counted(fine: Sequence[tuple[Work, Judged]], applied: Sequence[bool]) -> list[RunTally]:
    books: dict[int, Book] = {}
    for (work, one), was_applied in zip(fine, applied, strict=True):
        if was_applied and one.reading is not None:
            work.book.count(one.reading)
            books[id(work.book)] = work.book
    return [book.row() for book in books.values()]


def _resolve(future: asyncio.Future[Kept], end: Kept | Exception) -> None:
    if future.done():
        return
    if isinstance(end, Exception):
        future.set_exception(end)
    else:
        future.set_result(end)
