"""PRW adapter for shops that need a browser: rendered pages, screenshots, policy pages."""

from __future__ import annotations

from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return []
