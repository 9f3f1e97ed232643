"""Pushes, one after another, each of which may be killed: ``python -m … ADDRESS TOKEN``, a push a line.

A line holds the folder of a spool and what is armed (or ``-``). Everything is imported once, and each push is a fork of
this process. Answered by a line with its exit status.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from prw_base import faults
from prw_sdk.cli.run import push
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from tests.sdk.resolver_double import Intake
from tests.sdk.sending import resolver


def main() -> None:
    """Push as often as asked."""
    address, token = sys.argv[1:]
    for line in sys.stdin:
        folder, armed = line.split()
        child = os.fork()
        if child == 0:
            faults.arm("" if armed == "-" else armed)
            spool = Spool(Path(folder))
            asyncio.run(push(spool, resolver(Intake(address=address), token), unwatched))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
