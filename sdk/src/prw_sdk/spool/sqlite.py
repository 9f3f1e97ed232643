"""The spool's SQLite file: opening it, its schema, its named statements, and short transactions."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

SCHEMA_VERSION = 3
_BUSY_MS = 30_000
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_VERSION = re.compile(r"^-- version: (\d+)$", re.MULTILINE)


class SpoolUnusable(Exception):
    """The folder cannot serve as a spool; the message says why and what to do."""


def statements(name: str) -> Mapping[str, str]:
    """The named blocks of one of this package's SQL files."""
    return dict(_blocks(_NAME, name))


def _blocks(mark: re.Pattern[str], name: str) -> Iterator[tuple[str, str]]:
    pieces = mark.split(files(__package__).joinpath(name).read_text("utf-8"))
    yield from zip(pieces[1::2], pieces[2::2], strict=True)


class SqliteFile:
    """One connection for all threads of a process; other processes have their own.

    Every commit is flushed to the disk (``synchronous=FULL``), since what is reported as kept must be kept. Where the
    file holds no table yet, `fresh` is called before the first is made, and may refuse by what it raises.
    """

    def __init__(self, path: Path, fresh: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(fresh)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, fresh: Callable[[], None]) -> None:
        self._connection.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._migrate(fresh)

    def close(self) -> None:
        """Close the connection, once a statement that another thread runs has ended.

        A task that is cancelled leaves its thread at work, and SQLite crashes the process where a connection is
        closed under a running statement.
        """
        with self._lock:
            self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its start; rolled back on any error."""
        with self._lock, usable():
            yield from self._transaction()

    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            # a full disk may have ended the transaction already
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection for one statement that reads."""
        with self._lock, usable():
            yield self._connection

    def _migrate(self, fresh: Callable[[], None]) -> None:
        with self.writing() as connection:
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found > SCHEMA_VERSION:
                raise SpoolUnusable(
                    f"the spool has schema version {found} and this program knows {SCHEMA_VERSION}: "
                    "upgrade prw-sdk"
                )
            (tables,) = connection.execute("PRAGMA schema_version").fetchone()
            if not found and tables:
                raise SpoolUnusable("the file is a database of something else, not a spool")
            if not found:
                # nobody else can make tables meanwhile, so what is there was there before any
                fresh()
            for version, block in _blocks(_VERSION, "schema.sql"):
                if int(version) > found:
                    _apply(connection, int(version), block)


@contextmanager
def usable() -> Iterator[None]:
    """Whatever the disk or the file refuses is raised as `SpoolUnusable`."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as refused:
        raise SpoolUnusable(
            f"the spool cannot be used: {refused}; what it held it still holds, "
            "so mend the disk and run again"
        ) from refused


def _apply(connection: sqlite3.Connection, version: int, block: str) -> None:
    for statement in block.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version={version}")
