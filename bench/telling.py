"""What the benches have in common: rounds in turn, the table, and the last line."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence


def machine() -> str:
    """The machine in a few words."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    texts = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[at]) for row in texts) for at in range(len(heads))]
    for row in texts:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def last_line(bench: str, ratios: Mapping[str, float], seconds: float) -> None:
    """Print the line that programs read."""
    rounded = {name: round(value, 3) for name, value in ratios.items()}
    said = {"bench": bench, "ratios": rounded, "machine": machine(), "seconds": round(seconds, 1)}
    print(json.dumps(said))
