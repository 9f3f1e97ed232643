"""Apply a package's migrations: plain SQL files ``NNNN.name.sql``, in order, each exactly once.

Each file runs as the owner role in one transaction that also marks it as applied. A file with the
line ``-- transactional: false`` holds one statement that cannot run in a transaction
(``CREATE INDEX CONCURRENTLY``), and must be one that may be repeated after a crash.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

import psycopg
from psycopg import sql
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend
from yoyo.migrations import Migration, MigrationList, StepCollector

from prw_base.server.provision import OWNER

_FILE: Final = re.compile(r"[0-9]{4}\.[a-z0-9_]+\.sql")
_NOT_TRANSACTIONAL: Final = re.compile(r"^--\s*transactional:\s*false\s*$", re.MULTILINE)
_LOCK: Final = 0x5052_5702
_POLL_SECONDS: Final = 0.1
_TABLE: Final = "_yoyo_migration"


@dataclass(frozen=True, slots=True)
class _Target:
    """What the backend connects to, in place of a URL, which would need quoting."""

    dsn: str
    owner: str
    database: str = ""


class _Backend(PostgresqlPsycopgBackend):  # type: ignore[misc]  # yoyo has no types
    """yoyo's bookkeeping, with the work and its mark in one transaction."""

    def connect(self, dburi: _Target) -> psycopg.Connection:
        connection = psycopg.connect(dburi.dsn, autocommit=True)
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(dburi.owner)))
        return connection

    @contextmanager
    def lock(self, timeout: float = 0) -> Iterator[None]:
        """One migrator at a time. The server frees it with the session, a killed one's too.

        Asked for again and again: a statement that waits for it holds a snapshot, which CREATE
        INDEX CONCURRENTLY of the one that has it would wait for.
        """
        while not self._has_lock():
            time.sleep(_POLL_SECONDS)
        yield

    def _has_lock(self) -> bool:
        row = self.connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        return bool(row[0])

    def apply_one(self, migration: Migration, force: bool = False, mark: bool = True) -> None:
        """Apply and mark; a crash in between leaves neither."""
        if not migration.use_transactions:
            migration.process_steps(self, "apply", force=force)
        with self.transaction():
            if migration.use_transactions:
                migration.process_steps(self, "apply", force=force)
            self.mark_one(migration)


class _SqlFile(Migration):  # type: ignore[misc]  # yoyo has no types
    """A file is sent as it stands: splitting it would have to understand function bodies."""

    def __init__(self, file: Traversable) -> None:
        super().__init__(file.name.removesuffix(".sql"), file.name, "")
        self._text = file.read_text("utf-8")

    def load(self) -> None:
        if self.loaded:
            return
        steps = StepCollector(migration=self)
        steps.add_step(lambda connection: connection.execute(self._text))
        self.use_transactions = _NOT_TRANSACTIONAL.search(self._text) is None
        self._depends: set[Any] = set()
        self.steps = steps.create_steps(self.use_transactions)


def migrate(dsn: str, package: str, owner: str = OWNER) -> list[str]:
    """Apply what is missing of the SQL files in ``package`` and return the names applied.

    ``dsn`` is of a login that may become ``owner``. A second migrator waits for the first. Raises
    psycopg.Error where a file fails (it and all after it stay unapplied), and ValueError where a
    file's name is not ``NNNN.name.sql`` or two share a number.
    """
    files = MigrationList(_files(package))
    with _Backend(_Target(dsn, owner), _TABLE) as backend, backend.lock():
        backend.ensure_internal_schema_updated()
        missing = sorted(backend.to_apply(files), key=lambda migration: str(migration.id))
        for migration in missing:
            backend.apply_one(migration)
        return [str(migration.id) for migration in missing]


def pending(dsn: str, package: str, owner: str = OWNER) -> list[str]:
    """The names of the files in ``package`` that are not applied yet; changes nothing else."""
    files = MigrationList(_files(package))
    with _Backend(_Target(dsn, owner), _TABLE) as backend, backend.lock():
        backend.ensure_internal_schema_updated()
        return sorted(str(migration.id) for migration in backend.to_apply(files))


def _files(package: str) -> list[_SqlFile]:
    files = [f for f in resources.files(package).iterdir() if f.name.endswith(".sql")]
    _check_names([file.name for file in files])
    return [_SqlFile(file) for file in sorted(files, key=lambda file: file.name)]


def _check_names(names: list[str]) -> None:
    for name in names:
        if not _FILE.fullmatch(name):
            raise ValueError(f"migration {name!r} is not named NNNN.name.sql")
    numbers = [name[:4] for name in names]
    if len(set(numbers)) != len(numbers):
        raise ValueError("two migrations share a number")
