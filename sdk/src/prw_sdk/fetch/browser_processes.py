"""The processes of a browser, for ending those that do not end by themselves; without /proc none are found."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _STARTED = 1, 19
"""Where they stand in ``/proc/PID/stat`` behind the name (proc_pid_stat(5))."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process; a number alone may be another one's by the time that it is used."""

    pid: int
    parent: int
    started: int


def children_of_mine(words: bytes) -> frozenset[Process]:
    """Direct children of this process whose command line holds these words."""
    found = (one for one in _every().values() if one.parent == os.getpid())
    return frozenset(one for one in found if words in _command(one.pid))


def trees(roots: Iterable[Process]) -> tuple[Process, ...]:
    """These processes and all that descend from them, as they are now."""
    every, found = _every(), set(roots)
    while more := {one for one in every.values() if one.parent in {up.pid for up in found}} - found:
        found |= more
    return tuple(found)


def kill(processes: Iterable[Process]) -> None:
    """End those that are still there, at once (SIGKILL, which a stopped process obeys as well)."""
    for one in processes:
        now = _read(one.pid)
        if now is not None and now.started == one.started:
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)


def _every() -> Mapping[int, Process]:
    names = (folder.name for folder in _PROC.iterdir()) if _PROC.is_dir() else ()
    numbers = [int(name) for name in names if name.isdecimal()]
    return {pid: found for pid in numbers if (found := _read(pid)) is not None}


def _read(pid: int) -> Process | None:
    try:
        fields = (
            (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        )
        return Process(pid, int(fields[_PARENT]), int(fields[_STARTED]))
    except (OSError, IndexError, ValueError):
        return None


def _command(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""
