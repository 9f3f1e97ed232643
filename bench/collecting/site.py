"""A fast site on loopback: ``python -m bench.collecting.site``; its first line of output is its port.

One process, one small protocol; it ends when its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys

from bench.collecting.pages import page, rows

_ROBOTS = b"User-agent: *\nAllow: /\n"
_MOST_KEPT = 2_000


class Site(asyncio.Protocol):
    """Answers GETs in order over one connection."""

    filler = rows()
    made: dict[int, bytes] = {}  # noqa: RUF012 - one cache for all connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the way back."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP
        self._transport = transport
        self._seen = b""

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._seen += data
        while (end := self._seen.find(b"\r\n\r\n")) >= 0:
            line, self._seen = self._seen[:end], self._seen[end + 4 :]
            self._transport.write(self._answer(line.split(b" ", 2)[1]))

    def _answer(self, path: bytes) -> bytes:
        if path.startswith(b"/p/"):
            number = int(path[3:])
            found = self.made.get(number)
            if found is None:
                found = _whole(page(number, self.filler), b"text/html; charset=utf-8")
                if len(self.made) < _MOST_KEPT:
                    self.made[number] = found
            return found
        return _whole(_ROBOTS, b"text/plain")


def _whole(body: bytes, kind: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n"
        % (kind, len(body))
    ) + body


async def main() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Site, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
