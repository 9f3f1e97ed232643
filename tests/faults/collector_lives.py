"""Lives of a collector, one after another, each of which may be killed: ``python -m … PORT SPOOL``, a life a line.

Everything is imported once, and each life is a fork of this process, so that hundreds of them take seconds. A line
holds the life's number, the named point at which it is killed (or ``-``), and the seconds after which it is killed
wherever it is (or ``-``). Answered by a line with its exit status.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from prw_base import faults
from prw_sdk.collect import RunLimits, collect
from prw_sdk.fetch.polite import Politeness
from prw_sdk.spool.folder import Spool
from tests.sdk.jobs import list_job
from tests.sdk.misbehaving import Site

LIMITS = RunLimits(concurrency=8, attempt_budget=3, manners=Politeness(100_000, 16))


def main() -> None:
    """Live as often as asked."""
    site, folder = Site(port=int(sys.argv[1])), Path(sys.argv[2])
    for line in sys.stdin:
        life, point, seconds = line.split()
        child = os.fork()
        if child == 0:
            _live(site, folder, life, "" if point == "-" else point)
        sys.stdout.write(f"{_outlive(child, seconds)}\n")
        sys.stdout.flush()


def _live(site: Site, folder: Path, life: str, point: str) -> None:
    """One run, to its end or its death; the site learns from the agent's name which life asked."""
    faults.arm(point)
    job = list_job(site, batch=20)
    job = replace(job, net=replace(job.net, user_agent=f"life/{life}"))
    spool = Spool(folder)
    (report,) = asyncio.run(collect([job], spool, LIMITS))
    spool.close()
    os._exit(0 if report.failure is None else 1)


def _outlive(child: int, seconds: str) -> int:
    if seconds != "-":
        deadline = time.monotonic() + float(seconds)
        # the child's end is a signal here, so nothing has to be polled
        while (left := deadline - time.monotonic()) > 0:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            signal.sigtimedwait([signal.SIGCHLD], left)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    main()
