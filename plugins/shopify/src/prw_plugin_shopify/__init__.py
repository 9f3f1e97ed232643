"""PRW's adapter for Shopify shops, from what their storefronts serve as JSON."""

from __future__ import annotations

from prw_plugin_shopify.adapter import Shopify
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl

__all__ = ["Shopify", "prw_adapters"]


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return [Shopify]
