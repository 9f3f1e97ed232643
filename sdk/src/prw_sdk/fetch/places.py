"""One host's limits as all processes of this machine share them: places taken by flock, and times kept in a file.

A place is a locked file, so it is free again when its holder dies, however it dies. Times are of the clock that all
processes of a machine share (CLOCK_BOOTTIME), and are void after a restart of the machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import time
import weakref
from pathlib import Path

_STATE = struct.Struct("<16sdd")
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LONGEST = 48 * 3600.0
"""No time in the file is further ahead; one that is was damaged."""


def now() -> float:
    """Seconds of the clock that processes of this machine share."""
    return time.clock_gettime(_CLOCK)


class HostPlaces:
    """The places and times of one host; nothing here waits.

    Locks are kept on open files: a process forked while a place is held keeps it until that process ends too.
    """

    def __init__(self, folder: Path, host: str, places: int) -> None:
        name = hashlib.sha256(host.encode()).hexdigest()[:32]
        self._path = str(folder / name)
        self._files: dict[str, int] = {}
        self._places = places
        self._held: set[int] = set()
        self._waiting = 0
        self._boot = _boot()
        weakref.finalize(self, _close, self._files)

    def take(self) -> int | None:
        """Take a free place; None where there is none."""
        for place in range(self._places):
            if place not in self._held and self._lock(str(place)):
                self._held.add(place)
                return place
        return None

    def leave(self, place: int) -> None:
        """Give a place back."""
        self._unlock(str(place))
        self._held.discard(place)

    def begin_to_wait(self) -> None:
        """Let the other processes know that this one waits for a place."""
        self._waiting += 1
        self.still_waiting()

    def still_waiting(self) -> None:
        """Say it again, in case that somebody was just looking."""
        self._lock("waiting", fcntl.LOCK_SH)

    def end_to_wait(self) -> None:
        """One fewer of this process waits."""
        self._waiting -= 1
        if not self._waiting:
            self._unlock("waiting")

    def is_wanted(self) -> bool:
        """Whether somebody waits for a place already, here or in another process."""
        if self._waiting:
            return True
        if not self._lock("waiting"):
            return True
        self._unlock("waiting")
        return False

    def reserve(self, interval: float) -> float | None:
        """Take the next moment that is free, `interval` seconds after the last one; how many seconds ahead it is.

        None where another process is just doing the same.
        """
        if not self._lock("times"):
            return None
        try:
            moment, paused = self._times()
            present = now()
            mine = max(moment, present)
            self._write(mine + interval, paused)
            return mine - present
        finally:
            self._unlock("times")

    def paused(self) -> float:
        """Seconds for which the host is to be left alone."""
        return max(self._times()[1] - now(), 0.0)

    def pause(self, seconds: float) -> bool:
        """Leave the host alone for that long; False where another process is just writing."""
        if not self._lock("times"):
            return False
        try:
            moment, paused = self._times()
            self._write(moment, max(paused, now() + seconds))
            return True
        finally:
            self._unlock("times")

    def resume(self) -> float | None:
        """End a pause; how many seconds of it were left. None where another process is just writing."""
        if not self._lock("times"):
            return None
        try:
            moment, paused = self._times()
            self._write(moment, 0.0)
            return max(paused - now(), 0.0)
        finally:
            self._unlock("times")

    def _times(self) -> tuple[float, float]:
        stored = os.pread(self._file("times"), _STATE.size, 0)
        if len(stored) != _STATE.size:
            return 0.0, 0.0
        boot, moment, paused = _STATE.unpack(stored)
        latest = now() + _LONGEST
        if boot != self._boot or not (moment <= latest and paused <= latest):
            return 0.0, 0.0
        return moment, paused

    def _write(self, moment: float, paused: float) -> None:
        os.pwrite(self._file("times"), _STATE.pack(self._boot, moment, paused), 0)

    def _file(self, name: str) -> int:
        found = self._files.get(name)
        if found is None:
            found = self._files[name] = os.open(f"{self._path}.{name}", _FLAGS, 0o600)
        return found

    def _lock(self, name: str, how: int = fcntl.LOCK_EX) -> bool:
        try:
            fcntl.flock(self._file(name), how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(self, name: str) -> None:
        fcntl.flock(self._file(name), fcntl.LOCK_UN)


def _close(files: dict[str, int]) -> None:
    while files:
        os.close(files.popitem()[1])


def _boot() -> bytes:
    """What tells one start of the machine from the next, where the system says it."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        return bytes(16)
    return bytes.fromhex(text.strip().replace("-", ""))
