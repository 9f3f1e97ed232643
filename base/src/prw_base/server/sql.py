"""Named SQL blocks in a file beside the store that runs them.

A block starts with ``-- name: find_item``, then one comment line that says what it is for.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final

from psycopg import AsyncCopy
from psycopg.rows import dict_row

from prw_base.server.database import Connection

_BLOCK: Final = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)\s*$", re.MULTILINE)


class Statements:
    """The blocks of one store's file, run by name; values always travel as parameters."""

    def __init__(self, package: str, file: str = "store.sql") -> None:
        self._package = package
        self._file = file

    async def rows(self, conn: Connection, name: str, /, **values: object) -> list[dict[str, Any]]:
        """Run a block; its rows by column name, none where it returns nothing."""
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(self._blocks[name], values)
            return await cursor.fetchall() if cursor.description else []

    async def row(self, conn: Connection, name: str, /, **values: object) -> dict[str, Any] | None:
        """Run a block of which at most one row is asked; None where there is none."""
        rows = await self.rows(conn, name, **values)
        return rows[0] if rows else None

    async def run(self, conn: Connection, name: str, /, **values: object) -> int:
        """Run a block that writes; how many rows it wrote."""
        return (await conn.execute(self._blocks[name], values)).rowcount

    @asynccontextmanager
    async def copy(
        self, conn: Connection, name: str, /, **values: object
    ) -> AsyncIterator[AsyncCopy]:
        """Run a block that is a COPY; values are bound here, since COPY takes no parameters."""
        async with conn.cursor() as cursor, cursor.copy(self._blocks[name], values) as copy:
            yield copy

    @cached_property
    def _blocks(self) -> dict[str, bytes]:
        return {name: text.encode() for name, text in load(self._package, self._file).items()}


@cache
def load(package: str, file: str = "store.sql") -> dict[str, str]:
    """The blocks of ``file`` in ``package`` by name, each with its comment.

    Raises ValueError for a name that is used twice and for a block without its comment or SQL.
    """
    text = resources.files(package).joinpath(file).read_text("utf-8")
    starts = list(_BLOCK.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    blocks: dict[str, str] = {}
    for start, end in zip(starts, ends, strict=True):
        name, body = start["name"], text[start.end() : end].strip()
        if name in blocks:
            raise ValueError(f"{file}: two blocks are named {name}")
        _check(file, name, body)
        blocks[name] = body
    return blocks


def _check(file: str, name: str, body: str) -> None:
    comment, _, statement = body.partition("\n")
    if not comment.startswith("-- ") or not statement.strip():
        raise ValueError(f"{file}: block {name} needs a comment line and a statement")
