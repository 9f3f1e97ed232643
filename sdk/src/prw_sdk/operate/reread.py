"""Reading a whole spool again, on all cores: chunks of captures, in order, in bounded memory.

A reader process gets a capture's ledger row, takes the bytes from the spool's files itself, and gives back only what
the work makes of a chunk, so that little travels between processes.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import EntryPoint, entry_points
from itertools import chain, islice
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Generic, TypeVar

from prw_sdk import plugins
from prw_sdk.adapter import Adapter
from prw_sdk.evidence import Capture
from prw_sdk.plugins import GROUP, Plugins, UnknownAdapter
from prw_sdk.spool import codec
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing, Blobs
from prw_sdk.spool.model import CaptureState, ItemKey, KeptCapture

R = TypeVar("R")

CHUNK = 16
"""Captures that one process reads at a time."""

_AHEAD = 2
"""Chunks handed out to each process before the first of them must be back."""

EVIDENCE_DAMAGED = "EVIDENCE_DAMAGED"
UNKNOWN_ADAPTER = "UNKNOWN_ADAPTER"


class ReadersDied(Exception):
    """A process that reads ended by itself, since it ran out of memory or a library crashed; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where adapters come from: entry points of a project that need not be installed, before the installed ones."""

    points: tuple[tuple[str, str], ...] = ()
    paths: tuple[str, ...] = ()

    def plugins(self) -> Plugins:
        """The adapters; the project's stand in place of installed ones of the same entry point."""
        # before those of any other project that was looked at
        sys.path[:] = [*self.paths, *(path for path in sys.path if path not in self.paths)]
        if not self.points:
            return plugins.load()
        own = [EntryPoint(name, value, GROUP) for name, value in self.points]
        names, values = zip(*self.points, strict=True)
        others = entry_points(group=GROUP)
        rest = [one for one in others if one.name not in names and one.value not in values]
        return plugins.load([*own, *rest])


@dataclass(frozen=True, slots=True)
class Handed:
    """A capture to read, and where that is asked for what `version` read of it before (`prw_sdk.spool.readings`).

    What the resolver said of it does not reach the work.
    """

    kept: KeptCapture
    before: bytes | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A capture with its bytes and its adapter; or `code` and `error`, which say why it cannot be read."""

    handed: Handed
    capture: Capture | None = None
    adapter: Adapter | None = None
    code: str | None = None
    error: str | None = None


Work = Callable[[Iterator[Opened]], R]
"""What is made of one chunk. It travels by name: a function of a module, or a dataclass of plain values."""


@dataclass(frozen=True, slots=True)
class Rereading(Generic[R]):
    """One pass over captures of the spool in `folder`.

    `processes` is the number of cores unless given; few captures are read in this process. `apart` reads in fresh
    processes in any case, so that another version of modules that are loaded here can be met.
    """

    folder: Path
    work: Work[R]
    origin: Origin = Origin()
    processes: int | None = None
    apart: bool = False

    def over(self, captures: Iterable[Handed]) -> Iterator[R]:
        """What the work makes of each chunk, in order; raises `ReadersDied`, and whatever the work raises."""
        chunks = _chunks(captures)
        first = list(islice(chunks, 2))
        chunks = chain(first, chunks)
        processes = self.processes or cores()
        if not self.apart and (processes == 1 or len(first) < 2):
            reader = _Reader(self.folder, self.origin)
            return (self.work(reader.opened(chunk)) for chunk in chunks)
        return self._spread(chunks, processes)

    def _spread(self, chunks: Iterator[list[Handed]], processes: int) -> Iterator[R]:
        context = _context(apart=self.apart)
        begin = (self.folder, self.origin)
        if context.get_start_method() == "fork":
            # what is loaded here once is there in every child
            _begin(*begin)
            pool = ProcessPoolExecutor(processes, context)
        else:
            pool = ProcessPoolExecutor(processes, context, initializer=_begin, initargs=begin)
        try:
            waiting: deque[Future[R]] = deque()
            for chunk in chunks:
                waiting.append(pool.submit(_read, self.work, [_packed(one) for one in chunk]))
                if len(waiting) > _AHEAD * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as died:
            raise ReadersDied(
                "a process that read captures died: run again with --processes 1 to see which one"
            ) from died
        finally:
            pool.shutdown(cancel_futures=True)


def _chunks(captures: Iterable[Handed]) -> Iterator[list[Handed]]:
    source = iter(captures)
    while chunk := list(islice(source, CHUNK)):
        yield chunk


def cores() -> int:
    """How many processes may run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _context(*, apart: bool) -> BaseContext:
    """A fork costs nothing, and is safe while this process has one thread only."""
    methods = multiprocessing.get_all_start_methods()
    if not apart and "fork" in methods and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


class _Reader:
    """Opens captures; one in each process."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        self._blobs = Blobs(folder / "blobs", make=False)
        self._plugins = origin.plugins()
        self._adapters: dict[str, Adapter] = {}

    def opened(self, chunk: Iterable[Handed]) -> Iterator[Opened]:
        return map(self._open, chunk)

    def _open(self, handed: Handed) -> Opened:
        try:
            capture = codec.decode(handed.kept.body, self._blobs.get)
            return Opened(handed, capture, self._adapter(capture.adapter.name))
        except (BlobMissing, BlobDamaged) as damaged:
            return Opened(handed, code=EVIDENCE_DAMAGED, error=str(damaged))
        except UnknownAdapter as unknown:
            return Opened(handed, code=UNKNOWN_ADAPTER, error=str(unknown))

    def _adapter(self, name: str) -> Adapter:
        if name not in self._adapters:
            self._adapters[name] = self._plugins.find(name)()
        return self._adapters[name]


_readers: list[_Reader] = []


def _begin(folder: Path, origin: Origin) -> None:
    _readers[:] = [_Reader(folder, origin)]


_Packed = tuple[int, str, str, str, datetime, bytes, bytes | None, str | None]
"""What of a capture travels: plain values, which cost a tenth of what dataclasses do."""


def _packed(one: Handed) -> _Packed:
    kept, key = one.kept, one.kept.key
    named = (kept.row, key.tenant, key.source_id, key.native_id)
    return (*named, kept.captured_at, kept.body, one.before, one.version)


def _unpacked(packed: _Packed) -> Handed:
    row, tenant, source_id, native_id, captured_at, body, before, version = packed
    key = ItemKey(tenant, source_id, native_id)
    kept = KeptCapture(row, key, captured_at, body, CaptureState.KEPT)
    return Handed(kept, before, version)


def _read(work: Work[R], chunk: list[_Packed]) -> R:
    (reader,) = _readers
    return work(reader.opened(map(_unpacked, chunk)))
