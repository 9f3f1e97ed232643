"""The demo's child processes: started with a log, watched while anything is waited for, and ended without a trace."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

TAIL_LINES = 20
STOP_SECONDS = 20.0
PIPE_LIMIT = 1024 * 1024


class DemoFailed(Exception):
    """The demo cannot go on; the message says what is wrong, and where to look."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process of its own group, whose output goes to `log`; `serves` where it ends only when told to."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    serves: bool = True

    def describe_end(self) -> str:
        """How it ended, with the last lines of its log."""
        how = ended_how(self.process.returncode)
        return f"{self.name} {how}; the end of {self.log}:\n{tail(self.log)}"


class Guard:
    """Another process, which ends what it was told of when this one is gone, however that came; a context.

    It holds `lock` as long as it runs.
    """

    def __init__(self, lock: int) -> None:
        self._lock = lock

    def __enter__(self) -> Guard:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "prw_examples.demo.guard"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=(self._lock,),
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def watch(self, kind: str, pid: int) -> None:
        """Have a server (`postgres`) or a process group (`group`) ended when this process is gone; or `forget` it."""
        with suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.write(f"{kind} {pid}\n".encode())


class Children:
    """All of them, as a context: whatever happens, none outlives it."""

    def __init__(self, logs: Path, guard: Guard) -> None:
        self._logs = logs
        self._guard = guard
        self._running: list[Child] = []

    async def __aenter__(self) -> Children:
        self._logs.mkdir(mode=0o700, exist_ok=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in reversed(self._running):
            await self._stop(child)

    async def start(
        self, name: str, command: Iterable[str], *, serves: bool = True, piped: bool = False
    ) -> Child:
        """Start a process. `piped` leaves its standard output and error to the caller."""
        log = self._logs / f"{name}.log"
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if piped else output,
                stderr=asyncio.subprocess.PIPE if piped else output,
                start_new_session=True,
                limit=PIPE_LIMIT,
            )
        finally:
            os.close(output)
        self._guard.watch("group", process.pid)
        child = Child(name, process, log, serves)
        self._running.append(child)
        return child

    async def finish(self, child: Child) -> int:
        """Wait for a process that ends by itself; its exit status."""
        try:
            return await self.while_running(child.process.wait())
        finally:
            await self._stop(child)
            self._running.remove(child)

    async def while_running(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work`; DemoFailed, with the end of its log, as soon as a child that serves has ended."""
        watched = [child for child in self._running if child.serves]
        ends = {asyncio.ensure_future(child.process.wait()): child for child in watched}
        doing = asyncio.ensure_future(work)
        try:
            await asyncio.wait({doing, *ends}, return_when=asyncio.FIRST_COMPLETED)
            for child in (child for end, child in ends.items() if end.done()):
                raise DemoFailed(child.describe_end())
            return await doing
        finally:
            await _cancel([doing, *ends])

    async def _stop(self, child: Child) -> None:
        process = child.process
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        # What it left behind in its group, itself included where it did not listen.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        self._guard.watch("forget", process.pid)


async def _cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    waiting = [task for task in tasks if not task.done()]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


def prw(*arguments: str) -> tuple[str, ...]:
    """The command line of ``prw`` in this environment."""
    script = Path(sys.executable).with_name("prw")
    if script.is_file():
        return (str(script), *arguments)
    return (sys.executable, "-c", "from prw_base.cli import main; main()", *arguments)


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log."""
    text = log.read_text("utf-8", "replace").splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in text) or "    (it is empty)"


def ended_how(status: int | None) -> str:
    """An exit status in words."""
    if status is not None and status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with exit status {status}"
