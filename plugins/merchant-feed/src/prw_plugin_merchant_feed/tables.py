"""TSV and CSV feeds: rows of cells, each with its place (RFC 4180; RFC 7111 for the places)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain

from prw_plugin_merchant_feed.encoding import FEED, stream
from prw_plugin_merchant_feed.words import Names, told
from prw_sdk.adapter import Kind, NotARecord
from prw_sdk.evidence import Locator, Part, Selector, SelectorType
from prw_sdk.take import Leaf

DELIMITERS = ",;\t|"
BEYOND = "beyond the header"

BROKEN = "broken row"

_HINT = "sep="
_NO_ROW: tuple[int, list[str] | None] = (0, None)


def rows(part: Part, names: Names) -> Iterator[tuple[Leaf, ...]]:
    """The leaves of each row, a row at a time; raises `NotARecord` where no column is the id.

    The delimiter is the one that the first line holds most of. Cells that a row lacks state nothing. A row with more
    cells than the header has was cut at the wrong places, as by an entity's semicolon: of it only that is said, as of
    one that cannot be read at all.
    """
    lines = _lines(part)
    header = next(lines, _NO_ROW)[1] or []
    if header and header[0].strip().lower().startswith(_HINT):
        header = next(lines, _NO_ROW)[1] or []
    columns = [names.of(name) for name in header]
    if "id" not in columns:
        listed = ", ".join(name.strip() for name in header)[:200]
        raise NotARecord(
            f"no column is the id (there are: {listed}): say in `columns` which one is"
        )
    for number, cells in lines:
        if cells is None or len(cells) > len(columns):
            yield (
                Leaf(BEYOND if cells else BROKEN, Kind.TEXT, "", _cell(number, len(columns) + 1)),
            )
        elif any(cell.strip() for cell in cells):
            pairs = enumerate(zip(columns, cells, strict=False), start=1)
            yield tuple(
                _leaf(name or f"column {at}", cell, number, at)
                for at, (name, cell) in pairs
                if name or cell.strip()
            )


def _lines(part: Part) -> Iterator[tuple[int, list[str] | None]]:
    """Every row with its number, None for one that cannot be read.

    The text is split at line feeds alone, so that numbers mean what RFC 7111 says.
    """
    lines = stream(part)
    first = lines.readline().lstrip("\ufeff")
    reader = csv.reader(chain([first], lines), delimiter=max(DELIMITERS, key=first.count))
    number = 0
    while True:
        number += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            cells = None
        yield number, cells


def _leaf(name: str, cell: str, row: int, column: int) -> Leaf:
    text = told(cell)
    return Leaf(name, Kind.TEXT if text else Kind.EMPTY, text, _cell(row, column))


def _cell(row: int, column: int) -> Locator:
    return Locator(FEED, Selector(SelectorType.CSV_CELL, f"{row},{column}"))
