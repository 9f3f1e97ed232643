"""What a feed's bytes are: unpacked, as XML or as a table, and in the charset that they are written in."""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from dataclasses import replace
from typing import TextIO

from prw_sdk.evidence import Part, is_charset
from prw_sdk.fetch import charset
from prw_sdk.fetch.outcome import FetchFailed, Outcome

FEED, PACKED = "feed", "packed"
MOST_BYTES = 256 * 1024 * 1024
"""A packed feed that holds more is not unpacked."""

_GZIP = b"\x1f\x8b"
_SAMPLE = 400
_XML_TYPE = re.compile(r"(application|text)/([a-z0-9.-]+\+)?xml")
_LEADING = b"\xef\xbb\xbf \t\r\n"


def parts(served: Part) -> tuple[Part, ...]:
    """The feed as text, and what was sent where that was a packed file; raises `FetchFailed`."""
    if not served.body.startswith(_GZIP):
        return (described(replace(served, role=FEED)),)
    body = _unpacked(served)
    feed = replace(
        served,
        role=FEED,
        body=body,
        sha256=hashlib.sha256(body).hexdigest(),
        media_type="application/octet-stream",
        charset_declared=None,
        charset_used=None,
    )
    return (described(feed), replace(served, role=PACKED))


def described(part: Part) -> Part:
    """The feed with the media type and the charset that its bytes show, where what was declared cannot be right.

    What the source declared stays in the part's headers and in `charset_declared`.
    """
    served = part.media_type.partition(";")[0].strip().lower()
    if is_xml(part):
        kind = part.media_type if _XML_TYPE.fullmatch(served) else "application/xml"
    else:
        kind = part.media_type if served.startswith("text/") else "text/csv"
    label = part.charset_declared or charset.declared(None, part.body, kind.partition(";")[0])
    used = charset.used(label, part.body, "text/plain")
    if label is None and used == "cp1252":
        # a guess from the first character that is broken; how many are tells better
        used = "utf-8"
    return replace(
        part,
        media_type=kind,
        charset_declared=label,
        charset_used=_believed(used or "utf-8", part.body),
    )


def stream(part: Part) -> TextIO:
    """The text of a part as `Part.text` gives it, a piece at a time; lines end at line feeds alone."""
    used = part.charset_used or "utf-8"
    codec = _ordered(used if is_charset(used) else "utf-8", part.body)
    return io.TextIOWrapper(io.BytesIO(part.body), encoding=codec, errors="replace", newline="\n")


def _ordered(codec: str, body: bytes) -> str:
    """The codec with the order of its bytes, which the mark at their start tells; little-endian where there is none."""
    if codec not in ("utf-16", "utf-32"):
        return codec
    return f"{codec}-be" if body.startswith((b"\xfe\xff", b"\x00\x00\xfe\xff")) else f"{codec}-le"


def is_xml(part: Part) -> bool:
    """Whether the body begins as markup does."""
    head = part.body[: _SAMPLE * 4]
    return head.replace(b"\x00", b"").lstrip(_LEADING + b"\xff\xfe").startswith(b"<")


def _believed(codec: str, body: bytes) -> str:
    """The codec, unless the bytes plainly speak against it: wide characters, or UTF-8 that is none.

    A text in UTF-8 may hold a broken character, where a title was cut off; one in which most of what is not ASCII is
    broken was never UTF-8.
    """
    wide = _wide(body[:_SAMPLE])
    if wide is not None and not codec.startswith(("utf-16", "utf-32")):
        return wide
    if codec not in ("utf-8", "utf-8-sig"):
        return codec
    text = body.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    foreign = sum(1 for one in re.finditer("[^\x00-\x7f]", text) if one[0] != "\ufffd")
    return "cp1252" if broken > foreign else codec


def _wide(sample: bytes) -> str | None:
    """UTF-16 without a byte order mark, as every second byte of plain text tells."""
    if len(sample) < 8:
        return None
    low, high = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 4
    if high > half and low < high // 4:
        return "utf-16-le"
    return "utf-16-be" if low > half and high < low // 4 else None


def _unpacked(served: Part) -> bytes:
    out, rest = bytearray(), served.body
    while rest.startswith(_GZIP):
        inner = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            out += inner.decompress(rest, MOST_BYTES + 1 - len(out))
        except zlib.error as broken:
            raise _failed(Outcome.UNDECODABLE, f"no valid gzip file: {broken}", served) from broken
        if len(out) > MOST_BYTES:
            raise _failed(Outcome.TOO_LARGE, f"unpacked it is larger than {MOST_BYTES}", served)
        if not inner.eof:
            raise _failed(Outcome.TRUNCATED, "the gzip file ends before its end mark", served)
        rest = inner.unused_data
    return bytes(out)


def _failed(outcome: Outcome, message: str, part: Part) -> FetchFailed:
    return FetchFailed(outcome, message, url=part.url_asked)
