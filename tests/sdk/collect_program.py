"""One run in a process of its own, so that a test can kill it: ``python -m … PORT SPOOL``."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from prw_sdk.collect import collect
from prw_sdk.spool.folder import Spool
from tests.sdk.jobs import QUICK, list_job
from tests.sdk.misbehaving import Site


def main() -> None:
    """Run, and print the report's counts."""
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    spool = Spool(folder)
    (report,) = asyncio.run(collect([list_job(Site(port=port))], spool, QUICK))
    spool.close()
    counts = {outcome.value: n for outcome, n in report.outcomes.items()}
    sys.stdout.write(json.dumps({"kept": report.kept, "joined": report.joined, **counts}))


if __name__ == "__main__":
    main()
