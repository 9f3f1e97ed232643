"""Ends what the demo has started when the demo itself is gone: ``python -m prw_examples.demo.guard``.

The demo holds the other end of standard input and names there, a line each, what to end: ``group PID`` a process
group, ``postgres PID`` a server, ``forget PID`` what has ended. The kernel closes that end however the demo ends, a
kill -9 included. Only the standard library is imported, so that the guard is there at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

PATIENCE_SECONDS = 10.0
_STEP_SECONDS = 0.05


def main(lines: Iterable[str]) -> None:
    """Take note of what is named until the other end closes, then end what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, str] = {}
    servers: dict[int, str] = {}
    for kind, pid in _orders(lines):
        groups.pop(pid, None)
        servers.pop(pid, None)
        if kind != "forget":
            (groups if kind == "group" else servers)[pid] = _identity(pid)
    _end(groups, os.killpg, signal.SIGTERM)
    _end(servers, os.kill, signal.SIGINT)


def _orders(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        kind, _, pid = line.strip().partition(" ")
        if kind in ("group", "postgres", "forget") and pid.isdecimal():
            yield kind, int(pid)


def _identity(pid: int) -> str:
    """When the process began, where the system tells it: a number alone may be another process's by now."""
    return _stat(pid, 19)


def _state(pid: int) -> str:
    return _stat(pid, 0)


def _stat(pid: int, field: int) -> str:
    """A field after the name in the process's status line (proc_pid_stat(5)); empty where there is none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        return status.rpartition(")")[2].split()[field]
    except (OSError, IndexError):
        return ""


def _end(known: dict[int, str], send: Callable[[int, int], None], first: signal.Signals) -> None:
    ours = [pid for pid, identity in known.items() if _identity(pid) == identity]
    for pid in ours:
        _send(send, pid, first)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(map(partial(_answers, send), ours)) and time.monotonic() < deadline:
        time.sleep(_STEP_SECONDS)
    for pid in ours:
        _send(send, pid, signal.SIGKILL)


def _answers(send: Callable[[int, int], None], pid: int) -> bool:
    if send is os.kill and _state(pid) == "Z":
        return False
    try:
        send(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _send(send: Callable[[int, int], None], pid: int, number: signal.Signals) -> None:
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return


if __name__ == "__main__":
    main(sys.stdin)
