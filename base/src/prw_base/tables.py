"""The one place where commands print tables, for people or, with ``--json``, for programs."""

from __future__ import annotations

import json as jsonlib
import re
import sys
import unicodedata
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from rich.console import Console
from rich.table import Table

_UNBOUNDED = 100_000
"""Columns of a terminal that there is none of: what is written to a file is as wide as its widest row."""

_INSTEAD = {"Cc": " ", "Cs": "\ufffd"}
_SURROGATE = re.compile("[\ud800-\udfff]")


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], json: bool = False
) -> None:
    """Print ``rows`` to standard output.

    ``columns`` are names like ``public_items``: keys with ``json``, headings without. With
    ``json`` the output is one line, a list of objects; else a table, or one line if there is none.
    Identifiers are never broken, so that they can be copied: where the terminal is too narrow for
    that, each row becomes a block with a line for each column.
    """
    if json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif not rows:
        print(f"{title}: none")
    else:
        cells = [tuple("" if cell is None else _shown(_text(cell)) for cell in row) for row in rows]
        _print_cells(title, [column.replace("_", " ") for column in columns], cells)


def print_json(value: object) -> None:
    """Print ``value`` to standard output as one line of JSON; a Decimal becomes a string."""
    text = jsonlib.dumps(value, default=_text, ensure_ascii=False)
    # what is no character can be written in JSON, though not in UTF-8
    print(_SURROGATE.sub(lambda one: f"\\u{ord(one[0]):04x}", text))


def _print_cells(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table, console = _table(title, headings, rows), _console()
    needed = console.measure(table, options=console.options.update(width=_UNBOUNDED))
    if not sys.stdout.isatty():
        console.width = needed.maximum
    if needed.minimum <= console.width:
        console.print(table)
    else:
        _print_blocks(title, headings, rows)


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading, cells in zip(headings, zip(*rows, strict=True), strict=True):
        prose = any(" " in cell for cell in cells)
        table.add_column(heading, no_wrap=not prose, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _print_blocks(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, headings))
    print(f"{title}:")
    for row in rows:
        print()
        for heading, cell in zip(headings, row, strict=True):
            print(f"  {heading:<{width}}  {cell}".rstrip())


def _console() -> Console:
    width = None if sys.stdout.isatty() else _UNBOUNDED
    return Console(width=width, highlight=False, markup=False, emoji=False)


def _shown(text: str) -> str:
    """The text without control characters: what a source says must not move a terminal's cursor.

    What is no character, as in the name of a file that is no UTF-8, is shown as U+FFFD.
    """
    return "".join(_INSTEAD.get(unicodedata.category(one), one) for one in text)


def _text(cell: object) -> str:
    if isinstance(cell, datetime):
        return cell.isoformat(timespec="seconds")
    if isinstance(cell, date | Decimal | timedelta):
        return str(cell)
    if isinstance(cell, frozenset | set | tuple | list):
        return ", ".join(
            sorted(map(str, cell)) if isinstance(cell, frozenset | set) else map(str, cell)
        )
    return str(cell)
