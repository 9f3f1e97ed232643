"""Records as JSON lines, CSV or Parquet, written as they are read: memory does not grow with their number."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from itertools import islice
from typing import Any, BinaryIO

from prw_sdk.operate.readings import SHOWN, Reading

NAMES = (
    *("source_id", "native_record_id", "captured_at", "held"),
    *("record_id", "listing_key", "merchant"),
    *(attribute.replace(":", "_") for attribute in SHOWN),
    *("claims", "code", "error"),
)
"""The columns of CSV and Parquet. `claims` holds all claims as JSON; `code` says why there is no record.

`held` is `true` or `false`: whether the capture waits for the judgement of its run, and counts for nothing before.
"""
_ROWS = 1000


class Format(StrEnum):
    """How records are written."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


class FormatUnusable(Exception):
    """The format cannot be written here; the message says what to install or to give."""


def write(readings: Iterable[Reading], format: Format, out: BinaryIO) -> None:
    """Write every reading. Raises `FormatUnusable` before anything is written."""
    _WRITERS[format](readings, out)


def values(reading: Reading) -> Mapping[str, object]:
    """A reading as a value for each of `NAMES`."""
    line = reading.line()
    record = reading.record
    claims = () if record is None else reversed(record.claims)
    first = {claim.attribute: claim.value_as_stated for claim in claims}
    merchant = None if record is None or record.merchant is None else record.merchant
    shown = {attribute.replace(":", "_"): first.get(attribute) for attribute in SHOWN}
    said = json.dumps(line["claims"], ensure_ascii=False) if record is not None else None
    held = str(reading.held).lower()
    known = {
        **line,
        **shown,
        "held": held,
        "merchant": merchant and merchant.value_as_stated,
        "claims": said,
    }
    return {name: known.get(name) for name in NAMES}


def _jsonl(readings: Iterable[Reading], out: BinaryIO) -> None:
    out.writelines(
        json.dumps(reading.line(), ensure_ascii=False).encode() + b"\n" for reading in readings
    )


class _Text:
    """The csv module writes text; what it writes goes on as UTF-8."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(text.encode("utf-8", errors="replace"))


def _csv(readings: Iterable[Reading], out: BinaryIO) -> None:
    writer = csv.DictWriter(_Text(out), NAMES, lineterminator="\r\n")
    writer.writeheader()
    for reading in readings:
        writer.writerow(values(reading))


def _parquet(readings: Iterable[Reading], out: BinaryIO) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra: only who asks for Parquet needs it
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as missing:
        raise FormatUnusable(
            "--format parquet needs pyarrow: pip install 'prw-sdk[parquet]', or use csv or jsonl"
        ) from missing
    schema: Any = pa.schema([(name, pa.string()) for name in NAMES])
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        waiting = iter(readings)
        while rows := list(islice(waiting, _ROWS)):
            table = pa.Table.from_pylist([values(one) for one in rows], schema=schema)
            writer.write_table(table)


_WRITERS: Mapping[Format, Callable[[Iterable[Reading], BinaryIO], None]] = {
    Format.JSONL: _jsonl,
    Format.CSV: _csv,
    Format.PARQUET: _parquet,
}
