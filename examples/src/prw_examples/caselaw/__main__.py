"""Serve the portal on loopback until it is stopped: ``python -m prw_examples.caselaw`` prints the settings for it."""

from __future__ import annotations

import signal
import sys

from prw_examples.caselaw import portal
from prw_sdk.testing.server import serving

if __name__ == "__main__":
    with serving() as site:
        portal.build(site)
        sys.stdout.write(f'contact = "you@example.org"\n{portal.source(site)}')
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
