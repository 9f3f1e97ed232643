"""Bringing a body back to what the source encoded, within a limit: a body that is cut short is not evidence.

A part keeps decoded bytes. Every decoder here gives up as soon as it has made more than the limit, so that a small
answer cannot inflate without bound (a "bomb").
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli
import zstandard

from prw_sdk.fetch.outcome import Outcome

ACCEPTED_ENCODINGS = "gzip, deflate, br, zstd"
_MOST_ENCODINGS = 4
_NOTHING = frozenset({"", "identity", "none"})
_CHUNK = 64 * 1024
_SLICE = 512
_ZLIB_HEADS = frozenset(range(0x08, 0x80, 0x10))


class BadBody(Exception):
    """The body cannot be evidence; `outcome` says why."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message


def decoded(raw: bytes, content_encoding: str | None, limit: int) -> bytes:
    """The body that was encoded (RFC 9110, section 8.4: the last one named was applied last).

    Raises `BadBody` where it is larger than `limit` bytes, cut short, or undecodable.
    """
    if content_encoding is None or not raw:
        return _within(raw, limit)
    named = (name.strip().lower() for name in content_encoding.split(","))
    steps = [name for name in named if name not in _NOTHING]
    if len(steps) > _MOST_ENCODINGS:
        raise BadBody(Outcome.UNDECODABLE, f"encoded {len(steps)} times over")
    for name in reversed(steps):
        decode = _DECODERS.get(name)
        if decode is None:
            raise BadBody(Outcome.UNDECODABLE, f"content-encoding {name[:40]!r} was not asked for")
        raw = decode(raw, limit)
    return _within(raw, limit)


def _within(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise too_large(limit)
    return body


def too_large(limit: int) -> BadBody:
    """What to raise for a body beyond the limit."""
    return BadBody(Outcome.TOO_LARGE, f"the body is larger than the limit of {limit} bytes")


def _invalid(name: str, error: Exception) -> BadBody:
    return BadBody(Outcome.UNDECODABLE, f"the body is not valid {name}: {error}")


def _cut(name: str) -> BadBody:
    return BadBody(Outcome.TRUNCATED, f"the {name} stream ends before its end mark")


def _gunzip(raw: bytes, limit: int) -> bytes:
    """All members; what stands behind the last one is padding."""
    out, rest = bytearray(), raw
    while True:
        inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
        out += _inflated(inner, rest, limit - len(out), "gzip")
        rest = inner.unused_data
        if not rest.startswith(b"\x1f\x8b"):
            return bytes(out)


def _inflate(raw: bytes, limit: int) -> bytes:
    """Deflate in its zlib wrapper as the RFC says, or bare as some servers send it."""
    if raw[0] in _ZLIB_HEADS and len(raw) > 1 and int.from_bytes(raw[:2], "big") % 31 == 0:
        try:
            return _inflated(zlib.decompressobj(), raw, limit, "deflate")
        except BadBody as bad:
            if bad.outcome is not Outcome.UNDECODABLE:
                raise
    return _inflated(zlib.decompressobj(-zlib.MAX_WBITS), raw, limit, "deflate")


def _inflated(inner: zlib._Decompress, raw: bytes, limit: int, name: str) -> bytes:
    try:
        out = inner.decompress(raw, limit + 1)
    except zlib.error as broken:
        raise _invalid(name, broken) from broken
    if len(out) > limit:
        raise too_large(limit)
    if not inner.eof:
        raise _cut(name)
    return out


def _unbrotli(raw: bytes, limit: int) -> bytes:
    inner = brotli.Decompressor()
    out = bytearray()
    try:
        out += inner.process(raw, output_buffer_limit=_CHUNK)
        while not inner.can_accept_more_data() and len(out) <= limit:
            out += inner.process(b"", output_buffer_limit=_CHUNK)
    except brotli.error as broken:
        raise _invalid("br", broken) from broken
    if len(out) > limit:
        raise too_large(limit)
    if not inner.is_finished():
        raise _cut("br")
    return bytes(out)


def _unzstd(raw: bytes, limit: int) -> bytes:
    """All frames. The input is fed in slices so small that none of them makes more than some megabytes."""
    # a window beyond 8 MiB is not for HTTP (RFC 9659)
    maker = zstandard.ZstdDecompressor(max_window_size=8 * 1024 * 1024)
    inner, out = maker.decompressobj(), bytearray()
    for start in range(0, len(raw), _SLICE):
        piece = raw[start : start + _SLICE]
        while piece:
            if inner.eof:
                inner = maker.decompressobj()
            out += _unzstd_slice(inner, piece)
            if len(out) > limit:
                raise too_large(limit)
            piece = inner.unused_data if inner.eof else b""
    if not inner.eof:
        raise _cut("zstd")
    return bytes(out)


def _unzstd_slice(inner: zstandard.ZstdDecompressionObj, piece: bytes) -> bytes:
    try:
        return inner.decompress(piece)
    except zstandard.ZstdError as broken:
        raise _invalid("zstd", broken) from broken


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
