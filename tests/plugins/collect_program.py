"""One run in a process of its own, so that a test can kill it: ``python -m … PLUGIN PORT SPOOL``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prw_sdk.collect import collect
from prw_sdk.spool.folder import Spool
from prw_sdk.testing.server import Site
from tests.plugins.shops import job
from tests.sdk.jobs import QUICK


def main() -> None:
    """Run; a failure of the run is this program's."""
    name, port, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    spool = Spool(folder)
    (report,) = asyncio.run(collect([job(name, Site(port=port))], spool, QUICK))
    spool.close()
    if report.failure is not None:
        sys.exit(str(report.failure))


if __name__ == "__main__":
    main()
