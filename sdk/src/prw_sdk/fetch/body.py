"""Reading a response's body whole, within a limit: a body that is cut short is not evidence."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpx

from prw_sdk.fetch.outcome import Outcome

ACCEPTED_ENCODINGS = "gzip"
_MOST_DIGITS = 18


class BadBody(Exception):
    """The body cannot be evidence; `outcome` says why."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message


async def read(response: httpx.Response, limit: int) -> bytes:
    """The decoded body, at most `limit` bytes; raises `BadBody` when it is larger, cut short or undecodable."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    decoder = _decoder(encoding, limit)
    received, out = 0, bytearray()
    async for chunk in _raw(response):
        received += len(chunk)
        out += decoder.feed(chunk)
        if len(out) > limit:
            raise BadBody(Outcome.TOO_LARGE, f"the body is larger than the limit of {limit} bytes")
    _check_length(response, received)
    decoder.finish(received)
    return bytes(out)


async def _raw(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except httpx.RemoteProtocolError as cut:
        raise BadBody(Outcome.TRUNCATED, f"the body was cut short: {cut}") from cut


def _check_length(response: httpx.Response, received: int) -> None:
    stated = response.headers.get("content-length", "")
    chunked = "transfer-encoding" in response.headers
    if not stated.isdecimal() or chunked:
        return
    if len(stated) > _MOST_DIGITS or int(stated) != received:
        raise BadBody(Outcome.TRUNCATED, f"{received} bytes came of the {stated} that were stated")


class _Identity:
    def feed(self, chunk: bytes) -> bytes:
        return chunk

    def finish(self, received: int) -> None:
        """Nothing is held back."""


class _Gzip:
    """Gzip with its members, never inflating much beyond the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def feed(self, chunk: bytes) -> bytes:
        try:
            return self._feed(chunk)
        except zlib.error as broken:
            raise BadBody(Outcome.UNDECODABLE, f"the body is not valid gzip: {broken}") from broken

    def _feed(self, chunk: bytes) -> bytes:
        out = bytearray()
        while chunk and len(out) <= self._limit:
            if self._inner.eof:
                if not chunk.startswith(b"\x1f\x8b"):
                    break
                self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
            out += self._inner.decompress(chunk, self._limit + 1)
            chunk = self._inner.unused_data
        return bytes(out)

    def finish(self, received: int) -> None:
        if received and not self._inner.eof:
            raise BadBody(Outcome.TRUNCATED, "the gzip stream ends before its end mark")


def _decoder(encoding: str, limit: int) -> _Identity | _Gzip:
    if encoding in ("", "identity"):
        return _Identity()
    if encoding in ("gzip", "x-gzip"):
        return _Gzip(limit)
    raise BadBody(Outcome.UNDECODABLE, f"content-encoding {encoding!r} was not asked for")
