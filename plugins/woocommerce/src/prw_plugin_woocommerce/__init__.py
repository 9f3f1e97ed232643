"""PRW's adapter for WooCommerce shops, from their Store API."""

from __future__ import annotations

from prw_plugin_woocommerce.adapter import WooCommerce
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl

__all__ = ["WooCommerce", "prw_adapters"]


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return [WooCommerce]
