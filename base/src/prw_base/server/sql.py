"""Named SQL blocks in a file beside the store that runs them.

A block starts with ``-- name: find_item``, then one comment line that says what it is for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Final

_BLOCK: Final = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)\s*$", re.MULTILINE)


@cache
def load(package: str, file: str = "store.sql") -> dict[str, str]:
    """The blocks of ``file`` in ``package`` by name, each with its comment.

    Raises ValueError for a name that is used twice and for a block without its comment or SQL.
    """
    text = resources.files(package).joinpath(file).read_text("utf-8")
    starts = list(_BLOCK.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    blocks: dict[str, str] = {}
    for start, end in zip(starts, ends, strict=True):
        name, body = start["name"], text[start.end() : end].strip()
        if name in blocks:
            raise ValueError(f"{file}: two blocks are named {name}")
        _check(file, name, body)
        blocks[name] = body
    return blocks


def _check(file: str, name: str, body: str) -> None:
    comment, _, statement = body.partition("\n")
    if not comment.startswith("-- ") or not statement.strip():
        raise ValueError(f"{file}: block {name} needs a comment line and a statement")
