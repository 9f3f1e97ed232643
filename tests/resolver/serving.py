"""A resolver in a process of its own, and collectors that call it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from prw_base.client import open_channel
from tests.resolver.collecting import Caller
from tests.support.waiting import until


class Served:
    """A resolver in a process of its own, which may be killed and started again."""

    def __init__(
        self, dsns: dict[str, str], state: Path, workers: bool = False, program: str = "serve"
    ) -> None:
        self._program = program
        self._environment = os.environ | {
            "PRW_RESOLVER_DATABASE_DSN": dsns["resolver_app"],
            "PRW_RESOLVER_RELAY_DSN": dsns["resolver_relay"],
            "PRW_RESOLVER_STATE_FOLDER": str(state),
            "PRW_RESOLVER_ADDRESS": "127.0.0.1:0",
            "PRW_RESOLVER_WORKERS_IN_PROCESS": str(workers).lower(),
        }
        self._ready = state / f"{program}.json"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, faults: str = "") -> str:
        """Start with these faults armed; where it serves."""
        self._ready.unlink(missing_ok=True)
        command = ("resolver", self._program, "--ready-file", str(self._ready))
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from prw_base.cli import main; main()",
            *command,
            env=self._environment | {"PRW_FAULTS": faults},
            stderr=asyncio.subprocess.DEVNULL,
        )
        await until(self._ready.exists)
        return str(json.loads(self._ready.read_text("utf-8"))["address"])

    async def stop(self) -> None:
        """End it as an operator would, where it still runs."""
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()


@asynccontextmanager
async def calling(address: str, token: str) -> AsyncIterator[Caller]:
    """A collector of the resolver at `address`."""
    async with AsyncExitStack() as stack:
        yield Caller(await stack.enter_async_context(open_channel(address, token)))
