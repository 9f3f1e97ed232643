"""A network stream that knows whether anything was read since it was last written to.

An answer that was there before its question belongs to another page: a source that sends more bytes than it stated
would otherwise have them taken for the next page on that connection.
"""

from __future__ import annotations

import ssl
from typing import Any

import httpcore


class OrderedStream(httpcore.AsyncNetworkStream):
    """Passes everything on; `is_answered` says whether bytes came in after the last that went out."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self.is_answered = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Bytes from the network; empty at its end."""
        received = await self._inner.read(max_bytes, timeout)
        self.is_answered = True
        return received

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Bytes to the network."""
        self.is_answered = False
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """The same, encrypted."""
        return OrderedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """What the inner stream knows of itself."""
        return self._inner.get_extra_info(info)
