"""Programs of ours as processes of their own, which tests start, kill and start again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from prw_base.faults import VARIABLE
from prw_examples.demo.children import prw, tail
from tests.support.waiting import until

READY = timedelta(seconds=60)
KILLED = -signal.SIGKILL


class Program:
    """A server among the programs: its output goes to a log, and its ready file says where it serves."""

    def __init__(
        self, name: str, command: tuple[str, ...], environment: Mapping[str, str], folder: Path
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._ready = folder / f"{name}.ready.json"
        self.command = command
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    @property
    def told(self) -> dict[str, Any]:
        """What its ready file says."""
        told: dict[str, Any] = json.loads(self._ready.read_text("utf-8"))
        return told

    async def start(self, faults: str = "") -> bool:
        """Start it with these faults armed; whether it serves, rather than being killed on the way."""
        self._ready.unlink(missing_ok=True)
        command = prw(*self.command, "--ready-file", str(self._ready))
        self._process = await spawn(command, self._environment, self.log, faults)
        process = self._process
        await until(lambda: self._ready.exists() or process.returncode is not None, READY)
        if process.returncode is not None:
            assert process.returncode == KILLED, f"{self.name}:\n{tail(self.log)}"
        return process.returncode is None

    async def ended(self) -> int:
        """Wait until it ends; its exit status."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        """End it by SIGKILL."""
        await end(self._process, signal.SIGKILL)

    async def stop(self) -> None:
        """End it as an operator would; its exit status must be 0, and nothing of it may be left."""
        status = await end(self._process, signal.SIGTERM)
        assert status in (None, 0, KILLED), f"{self.name}:\n{tail(self.log)}"


async def run(
    command: tuple[str, ...], environment: Mapping[str, str], log: Path, faults: str = ""
) -> tuple[int, str]:
    """Run a program to its end: its exit status, and what it printed; what it told beside that is logged."""
    process = await spawn(command, environment, log, faults, printing=True)
    try:
        printed, _ = await process.communicate()
    finally:
        await end(process, signal.SIGKILL)
    return process.returncode or 0, printed.decode()


async def spawn(
    command: tuple[str, ...],
    environment: Mapping[str, str],
    log: Path,
    faults: str = "",
    printing: bool = False,
) -> asyncio.subprocess.Process:
    """A process in a group of its own, with these faults armed, that adds to a log."""
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **environment, VARIABLE: faults},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if printing else output,
            stderr=output,
            start_new_session=True,
        )


async def end(process: asyncio.subprocess.Process | None, how: signal.Signals) -> int | None:
    """Send a signal to a process that still runs, wait, and end what it left of its group."""
    if process is None:
        return None
    if process.returncode is None:
        process.send_signal(how)
    try:
        return await asyncio.wait_for(process.wait(), READY.total_seconds())
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
