"""Looking at a spool that cannot be written: on a read-only mount, or another user's. Nothing of it is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from prw_sdk.spool.sqlite import SCHEMA_VERSION, SpoolUnusable, SqliteFile, usable

_BESIDE = ("-wal", "-shm")


def is_read_only(ledger: Path) -> bool:
    """Whether this process can look at a ledger and not write it."""
    beside = [_beside(ledger, name) for name in _BESIDE]
    return not all(map(_may_write, [ledger.parent, *filter(Path.exists, [ledger, *beside])]))


def only_read(folder: Path) -> SpoolUnusable:
    """What to say to whoever wants to write there."""
    return SpoolUnusable(
        f"{folder} can only be read here: it is mounted read-only, or belongs to another user. Nothing of it is lost "
        "or touched; mount it writable or run as its user, or name another folder"
    )


class ReadOnlyFile(SqliteFile):
    """A ledger that is only read; also with what a killed process left in its log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._unchanged: object = None
        try:
            with usable():
                self._open()
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> None:
        """Close the connection, and remove the copy, if one was needed."""
        with self._lock:
            self._stack.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Raises `SpoolUnusable`."""
        raise only_read(self._path.parent)
        yield self._connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection for one statement that reads; raises `SpoolUnusable` where somebody has written meanwhile."""
        with super().reading() as connection:
            yield connection
        self._refuse_changed()

    def _open(self) -> None:
        self._connection = sqlite3.connect(
            self._address(), uri=True, isolation_level=None, check_same_thread=False
        )
        self._stack.callback(self._connection.close)
        self._connection.row_factory = sqlite3.Row
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found != SCHEMA_VERSION:
            raise SpoolUnusable(
                f"{self._path} has schema version {found} and this program reads {SCHEMA_VERSION}: "
                "look at it where it can be written, such as a copy, which brings an older one up to date"
            )

    def _address(self) -> str:
        log, shared = (_beside(self._path, name) for name in _BESIDE)
        if log.exists() and shared.exists():
            # SQLite reads the log, with or without a process that writes it
            return _uri(self._path, "mode=ro")
        # nobody has it open, so it stays as it is: or else that is noticed
        self._unchanged = _standing(self._path)
        if not (log.exists() and log.stat().st_size):
            return _uri(self._path, "mode=ro&immutable=1")
        # SQLite reads no log where it can make no -shm, and what stands there must not be passed over
        copied = Path(self._stack.enter_context(TemporaryDirectory(prefix="prw-look-")))
        for file in (self._path, log):
            shutil.copyfile(file, copied / file.name)
        self._refuse_changed()
        self._unchanged = None
        return _uri(copied / self._path.name, "mode=rw")

    def _refuse_changed(self) -> None:
        if self._unchanged is not None and self._unchanged != _standing(self._path):
            raise SpoolUnusable(f"{self._path} was written while it was looked at: look again")


def _standing(path: Path) -> tuple[object, ...]:
    return tuple(map(_stamp, (path, _beside(path, "-wal"))))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _uri(path: Path, query: str) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}?{query}"
