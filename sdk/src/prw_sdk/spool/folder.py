"""A spool as one folder: its ledger, blobs and checkpoints, and the lock that one run of a source holds."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Set
from contextlib import asynccontextmanager
from pathlib import Path

from prw_base.files import make_folder
from prw_sdk.evidence import Capture
from prw_sdk.spool import codec
from prw_sdk.spool.blobs import Blobs
from prw_sdk.spool.checkpoints import Checkpoints
from prw_sdk.spool.ledger import Ledger
from prw_sdk.spool.looking import Looking
from prw_sdk.spool.model import CaptureState, ItemKey, KeptCapture
from prw_sdk.spool.opening import (
    LEDGER,
    refuse_without_ledger,
    refuses_new_ledger,
    without_ledger,
)
from prw_sdk.spool.readings import Readings
from prw_sdk.spool.readonly import ReadOnlyFile, is_read_only, only_read
from prw_sdk.spool.sqlite import SpoolUnusable, SqliteFile

_POLL = 0.2
_TURNS = "turns"


class TurnGivenUp(Exception):
    """Whoever waited for a turn was told to stop."""


class Spool:
    """Everything that a collector keeps, in one folder. With `looking` it is only read, and nothing is made there."""

    def __init__(self, folder: Path, *, looking: bool = False) -> None:
        self.folder = folder
        try:
            self._file = ReadOnlyFile(folder / LEDGER) if looking else self._to_write()
            self.blobs = Blobs(folder / "blobs", make=not looking)
        except (OSError, sqlite3.DatabaseError) as refused:
            raise SpoolUnusable(f"{folder} cannot hold a spool: {refused}") from refused
        self.ledger = Ledger(self._file)
        self.looking = Looking(self._file)
        self.checkpoints = Checkpoints(self._file)
        self.readings = Readings(self._file)

    def _to_write(self) -> SqliteFile:
        make_folder(self.folder)
        refuse_without_ledger(self.folder)
        if is_read_only(self.folder / LEDGER):
            raise only_read(self.folder)
        return SqliteFile(self.folder / LEDGER, self._refuse_if_used)

    def _refuse_if_used(self) -> None:
        if refuses_new_ledger(self.folder):
            raise without_ledger(self.folder)

    @classmethod
    def existing(cls, folder: Path, *, to_write: bool = False) -> Spool:
        """The spool in that folder; raises `SpoolUnusable` where there is none, rather than making an empty one.

        One that cannot be written is only read, unless it is wanted `to_write`.
        """
        try:
            refuse_without_ledger(folder)
            (folder / LEDGER).stat()
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise SpoolUnusable(f"{folder} holds no spool: collect into it first") from missing
        except OSError as refused:
            raise SpoolUnusable(f"{folder} cannot be looked at: {refused}") from refused
        return cls(folder, looking=not to_write and is_read_only(folder / LEDGER))

    def close(self) -> None:
        """End what is being kept, and close the ledger."""
        self.blobs.close()
        self._file.close()

    def capture(self, kept: KeptCapture) -> Capture:
        """A kept capture with its bytes."""
        return codec.decode(kept.body, self.blobs.get)

    def mend(self) -> int:
        """Let captures be sent whose bytes were damaged and are whole again; how many they are."""
        mended = 0
        for damaged in self.ledger.damaged():
            parts = json.loads(damaged.body)["parts"]
            if all(self.blobs.is_whole(part["sha256"]) for part in parts):
                self.ledger.mend(damaged.row)
                mended += 1
        return mended

    def wanting(self, key: ItemKey, coming: Set[str]) -> Set[str]:
        """Which bytes of the last capture of an item are not whole and of use; `coming` are those at hand now.

        Of a capture that was sent, only what is at hand anyway is of use.
        """
        last = self.ledger.last_capture(key)
        if last is None:
            return frozenset()
        named = {part["sha256"] for part in json.loads(last.body)["parts"]}
        lost = {sha256 for sha256 in named if not self.blobs.is_whole(sha256)}
        return lost & coming if last.state is CaptureState.SUBMITTED else lost

    @asynccontextmanager
    async def turn(
        self,
        tenant: str,
        source_id: str,
        waiting: Callable[[], None],
        stop: asyncio.Event | None = None,
    ) -> AsyncIterator[bool]:
        """Hold the one turn of a source; True where another process held it first.

        The lock is the kernel's, so it ends with its holder, however that ends. `waiting` is called once if the
        turn is taken. Raises `TurnGivenUp` where `stop` is set before the turn has come.
        """
        folder = self.folder / _TURNS
        try:
            folder.mkdir(exist_ok=True)
            descriptor = os.open(folder / _turn(tenant, source_id), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as refused:
            raise SpoolUnusable(f"{folder} cannot hold a turn: {refused}") from refused
        try:
            waited = await _locked(descriptor, waiting, stop or asyncio.Event())
            yield waited
        finally:
            os.close(descriptor)

    def is_running(self, tenant: str, source_id: str) -> bool | None:
        """Whether a process holds the turn of a source now; None where this user may not see it."""
        try:
            descriptor = os.open(self.folder / _TURNS / _turn(tenant, source_id), os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError:
            return None
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)


def _turn(tenant: str, source_id: str) -> str:
    return hashlib.sha256(f"{tenant}\0{source_id}".encode()).hexdigest()[:32]


async def _locked(descriptor: int, waiting: Callable[[], None], stop: asyncio.Event) -> bool:
    if _try_lock(descriptor):
        return False
    waiting()
    # the holder is another process, which tells nobody when it ends; only asking again finds out
    while not _try_lock(descriptor):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _POLL)
            raise TurnGivenUp
    return True


def _try_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
