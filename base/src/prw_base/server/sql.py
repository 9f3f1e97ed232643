"""Named SQL blocks in a file beside the store that runs them.

A block starts with ``-- name: find_item``, then one comment line that says what it is for.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final

from psycopg import AsyncCopy
from psycopg.abc import Buffer
from psycopg.errors import error_from_result
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus
from psycopg.rows import dict_row

from prw_base.server.database import Connection

_BLOCK: Final = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)\s*$", re.MULTILINE)


_PIECE: Final = 256 * 1024


@dataclass(slots=True)
class Piece:
    """Bytes of a COPY, and how many messages they are: one a row, and the trailer of the binary format."""

    data: bytearray = field(default_factory=bytearray)
    messages: int = 0

    def add(self, message: Buffer) -> None:
        """Add a message; an empty one is none."""
        self.data += message
        self.messages += bool(message)


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

    async def copied(
        self, conn: Connection, name: str, /, **values: object
    ) -> AsyncGenerator[Piece, None]:
        """Run a block that is a COPY to us; its bytes in large pieces, each of whole messages.

        Reading row by row would go through the event loop for each of them, and take most of a server's time.
        """
        async with self.copy(conn, name, **values) as copy:
            piece, going = Piece(), True
            while going:
                going = await _gather(conn, copy, piece)
                if len(piece.data) >= _PIECE or not going:
                    yield piece
                    piece = Piece()

    @cached_property
    def _blocks(self) -> dict[str, bytes]:
        return {name: text.encode() for name, text in load(self._package, self._file).items()}


async def _gather(conn: Connection, copy: AsyncCopy, piece: Piece) -> bool:
    """Add to a piece what has come of a COPY; False at its end. Raises what ended it otherwise."""
    size, row = conn.pgconn.get_copy_data(1)
    while size > 0:
        piece.add(row)
        if len(piece.data) >= _PIECE:
            return True
        size, row = conn.pgconn.get_copy_data(1)
    if size == 0:
        waited = await copy.read()
        piece.add(waited)
        return bool(waited)
    for result in await conn.wait(fetch_many(conn.pgconn)):
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)
    return False


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
