"""A TCP proxy before a server that can be cut at a word that passes through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Cutter:
    """Passes bytes both ways; armed, it cuts a connection when the client sends a certain word.

    ``before`` cuts without handing the word over, so that the server never sees it. Otherwise the server gets it and
    its reply is dropped, so that the client cannot know what became of it.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._word: bytes | None = None
        self._before = False
        self.cuts = 0

    def arm(self, word: bytes, *, before: bool) -> None:
        """Cut at the next message with that word; once."""
        self._word, self._before = word, before

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends or it is cut."""
        down_reader, down_writer = await asyncio.open_connection(*self._server)
        deaf = asyncio.Event()
        pumps = [
            asyncio.create_task(self._up(reader, down_writer, deaf)),
            asyncio.create_task(_down(down_reader, writer, deaf)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        writer.close()
        down_writer.close()

    async def _up(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deaf: asyncio.Event
    ) -> None:
        while chunk := await reader.read(65536):
            if self._word is not None and self._word in chunk:
                self._word = None
                self.cuts += 1
                if self._before:
                    return
                deaf.set()
            writer.write(chunk)
            await writer.drain()


async def _down(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deaf: asyncio.Event
) -> None:
    """To the client; once deaf, the first reply is waited for, so that the server is done, and thrown away."""
    while chunk := await reader.read(65536):
        if deaf.is_set():
            return
        writer.write(chunk)
        with suppress(ConnectionError):
            await writer.drain()


@asynccontextmanager
async def cutting(dsn: str) -> AsyncIterator[tuple[Cutter, str]]:
    """A cutter before the server of the DSN, and the DSN that leads through it."""
    parts = conninfo_to_dict(dsn)
    async with cutting_before(str(parts["host"]), int(str(parts["port"]))) as (cutter, port):
        yield cutter, make_conninfo(dsn, host="127.0.0.1", port=port)


@asynccontextmanager
async def cutting_before(host: str, port: int) -> AsyncIterator[tuple[Cutter, int]]:
    """A cutter before that server, and the port of this machine that leads through it."""
    cutter = Cutter(host, port)
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    try:
        yield cutter, server.sockets[0].getsockname()[1]
    finally:
        server.close()
