"""Every adapter under plugins/ with its recorded captures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prw_plugin_marketplace_offers import MarketplaceOffers
from prw_plugin_merchant_feed import MerchantFeed
from prw_plugin_rendered_shop import RenderedShop
from prw_plugin_schemaorg import SchemaOrg
from prw_plugin_shopify import Shopify
from prw_plugin_woocommerce import WooCommerce
from prw_sdk.adapter import Adapter
from prw_sdk.evidence import Claim
from prw_sdk.testing import fixtures, reading

PLUGINS = Path(__file__).parents[2] / "plugins"
ADAPTERS: tuple[type[Adapter], ...] = (
    MarketplaceOffers,
    MerchantFeed,
    RenderedShop,
    SchemaOrg,
    Shopify,
    WooCommerce,
)


def recorded(adapter: type[Adapter]) -> tuple[fixtures.Fixture, ...]:
    """The recorded captures of a shipped adapter."""
    return fixtures.load(PLUGINS / adapter.name / "fixtures", adapter)


def claimed(adapter: type[Adapter]) -> Iterator[Claim]:
    """Every claim that a shipped adapter reads in its recorded captures."""
    for fixture in recorded(adapter):
        for record in reading.read(adapter(), fixture.capture)[0]:
            yield from record.claims
