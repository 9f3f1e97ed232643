"""The one place where commands print tables, for people or, with ``--json``, for programs."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from rich.console import Console
from rich.table import Table

_WIDE = 200
"""Columns of a table that is not written to a terminal, so that nothing is cut."""


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], json: bool = False
) -> None:
    """Print ``rows`` to standard output.

    ``columns`` are names like ``public_items``: keys with ``json``, headings without. With
    ``json`` the output is one line, a list of objects; else a table, or one line if there is none.
    """
    if json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif not rows:
        print(f"{title}: none")
    else:
        _console().print(_table(title, columns, rows))


def print_json(value: object) -> None:
    """Print ``value`` to standard output as one line of JSON; a Decimal becomes a string."""
    print(jsonlib.dumps(value, default=_text, ensure_ascii=False))


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else _text(cell) for cell in row))
    return table


def _console() -> Console:
    width = None if sys.stdout.isatty() else _WIDE
    return Console(width=width, highlight=False, markup=False, emoji=False)


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
