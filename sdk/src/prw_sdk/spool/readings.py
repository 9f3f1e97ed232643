"""What was read of captures: kept beside them, so that a mended adapter can be held against it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from prw_sdk.evidence import Record
from prw_sdk.spool.sqlite import SqliteFile, statements

SQL = statements("readings.sql")
_LITTLE = 4096


@dataclass(frozen=True, slots=True)
class KeptReading:
    """What that version of an adapter read of the capture in that `row`; `body` is what `encode` wrote."""

    row: int
    version: str
    body: bytes


def told(
    records: Iterable[Record], code: str | None = None, error: str | None = None
) -> Mapping[str, Any]:
    """The records of a capture as JSON values, or why there are none."""
    return {"code": code, "error": error, "records": [record.as_json() for record in records]}


def encode(records: Iterable[Record], code: str | None = None, error: str | None = None) -> bytes:
    """The same in few bytes."""
    return encode_told(told(records, code, error))


def encode_told(reading: Mapping[str, Any]) -> bytes:
    """What `told` gave, in few bytes; little is left as it is, since unpacking costs more than reading it."""
    body = json.dumps(reading, default=str, separators=(",", ":")).encode()
    return body if len(body) < _LITTLE else zlib.compress(body, 1)


def decode(body: bytes) -> Mapping[str, Any]:
    """What `encode` wrote: `code`, `error`, and `records` as `Record.as_json` has them."""
    plain = body if body.startswith(b"{") else zlib.decompress(body)
    found: Mapping[str, Any] = json.loads(plain)
    return found


class Readings:
    """The readings of a spool."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def keep(self, several: Sequence[KeptReading]) -> None:
        """Keep readings, in place of what was known of their captures; in one transaction."""
        with self._file.writing() as connection:
            connection.executemany(SQL["keep_reading"], [asdict(one) for one in several])

    def of(self, rows: Iterable[int]) -> dict[int, KeptReading]:
        """What was read of the captures in those rows, as far as it is known."""
        with self._file.reading() as connection:
            wanted = json.dumps(list(rows))
            found = connection.execute(SQL["find_readings"], {"rows": wanted}).fetchall()
        return {one["row"]: KeptReading(one["row"], one["version"], one["body"]) for one in found}
