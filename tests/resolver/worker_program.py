"""A worker in a process of its own, for tests that kill it: ``python -m tests.resolver.worker_program DSN FOLDER``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.resolver.walking import shop, working


async def main(dsn: str, folder: str) -> None:
    """Work until killed."""
    async with shop(dsn, Path(folder)) as open_shop, working(open_shop):
        print("working", flush=True)  # noqa: T201  # the test waits for this line
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
