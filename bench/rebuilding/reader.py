"""A reader that never rests: ``python -m bench.rebuilding.reader DSN TENANT CATALOG``.

It asks for pages of the catalogue until its standard input ends, then prints each answer's start (the machine's
monotonic clock), its seconds, and how many items it had.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.serve.model import ItemQuery
from prw_product.serve.service import Catalogue


async def read(dsn: str, scope: Scope) -> list[tuple[float, float, int]]:
    """Ask until the input ends; an error ends the program."""
    over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    answers = []
    async with await Database.open(dsn, max_size=1) as database:
        catalogue = Catalogue(database, scope)
        while not over.done():
            started = time.monotonic()
            page = await catalogue.list_items(ItemQuery())
            answers.append((started, time.monotonic() - started, len(page.items)))
    return answers


if __name__ == "__main__":
    print(json.dumps(asyncio.run(read(sys.argv[1], Scope(sys.argv[2], sys.argv[3])))))
