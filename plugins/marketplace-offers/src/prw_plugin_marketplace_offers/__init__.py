"""PRW adapter for paginated offers APIs of marketplaces with many sellers."""

from __future__ import annotations

from prw_plugin_marketplace_offers.adapter import MarketplaceOffers
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl

__all__ = ["MarketplaceOffers", "prw_adapters"]


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return [MarketplaceOffers]
