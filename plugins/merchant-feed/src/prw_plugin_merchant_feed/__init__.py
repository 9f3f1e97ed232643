"""PRW adapter for product feeds: Google Merchant XML and TSV, plain CSV."""

from __future__ import annotations

from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return []
