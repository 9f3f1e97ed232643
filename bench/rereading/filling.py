"""The spool that is read again, and where its adapter is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.collecting.ours import Shop
from bench.collecting.pages import page, rows
from prw_base.canonical import sha256_hex
from prw_sdk.evidence import AdapterVersion, Capture, Part
from prw_sdk.operate.reread import Origin
from prw_sdk.spool import codec, readings
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Item, ItemKey, NewCapture, Outcome, Settling, Verdict

ROOT = Path(__file__).resolve().parent.parent.parent
ORIGIN = Origin((("bench-shop", "bench.rereading"),), (str(ROOT),))
SMALLEST, LARGEST = 100_000, 200_000
"""Bytes; nine pages of real shops that the project was tried on have 106 kB to 1.1 MB."""
_FIRST = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def fill(folder: Path, count: int) -> list[Path]:
    """Keep that many pages as a run does, with what was read of them; the files of their bytes."""
    spool, filler, adapter = Spool(folder), rows(), Shop()
    try:
        captures = [_capture(number, _long(number, filler)) for number in range(count)]
        names = spool.blobs.put_all([capture.parts[0].body for capture in captures])
        run = spool.ledger.begin_run("local", "src_bench", _FIRST)
        spool.ledger.settle_all([_settling(one, adapter, run.generation) for one in captures])
        return [spool.blobs.path(name) for name in names]
    finally:
        spool.close()


def _long(number: int, filler: list[bytes]) -> bytes:
    """A page of the collecting bench, with as many rows more as make it as long as the shorter ones of real shops."""
    start, end = page(number, filler), b"</ul></body></html>"
    size = SMALLEST + (number * 7919) % (LARGEST - SMALLEST)
    more, at = [start.removesuffix(end)], number
    length = len(start)
    while length < size:
        more.append(filler[at % len(filler)])
        length += len(more[-1])
        at += 1
    return b"".join([*more, end])


def _capture(number: int, body: bytes) -> Capture:
    url = f"https://shop.example/p/{number}"
    at = _FIRST + timedelta(seconds=number)
    part = Part("page", sha256_hex(body), body, "text/html", url, url, 200, at, "utf-8", "utf-8")
    version = AdapterVersion(Shop.name, Shop.version)
    return Capture("src_bench", str(number), at, version, (part,))


def _settling(capture: Capture, adapter: Shop, generation: int) -> Settling:
    key = ItemKey("local", "src_bench", capture.native_record_id)
    verdict = Verdict(Outcome.STORED, fingerprint=codec.fingerprint(capture))
    item = Item(key, capture.parts[0].url_asked, verdict, 1, generation, capture.captured_at)
    read = readings.encode(adapter.read(capture))
    kept = NewCapture(capture.captured_at, codec.encode(capture), read, Shop.version)
    return Settling(0, item, kept)
