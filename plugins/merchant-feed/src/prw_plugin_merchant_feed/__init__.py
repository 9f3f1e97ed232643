"""PRW's adapter for product feeds: Google Merchant XML and TSV, and plain CSV."""

from __future__ import annotations

from prw_plugin_merchant_feed.adapter import MerchantFeed
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl

__all__ = ["MerchantFeed", "prw_adapters"]


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return [MerchantFeed]
