"""The declarations: what a marketplace serves for one offer, and what offers are found to label.

The names are those that marketplaces use for the same thing again and again; a source's own are in its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from prw_sdk.adapter import Disposition, Excluded, Stored
from prw_sdk.adapter.naming import declared
from prw_sdk.take import SELLER

SURFACES: Mapping[str, Disposition] = MappingProxyType(
    {
        "offers-page": Stored("offers"),
        "item-page": Excluded("the offer again, drawn for people"),
        "seller-page": Excluded(
            "about the seller, who is known by the name that each offer states"
        ),
        "seller-ratings": Excluded(
            "what buyers say of a seller, which is no fact about the article"
        ),
        "search-facets": Excluded("counts over the whole list, which say nothing of one offer"),
        "item-image": Excluded("the picture itself; its address is kept as core:image"),
    }
)

_STORED: Mapping[str, tuple[str, ...]] = {
    SELLER: ("seller.name", "seller.username"),
    "core:title": ("title", "product.name"),
    "core:brand": ("brand", "product.brand"),
    "core:mpn": ("mpn", "product.mpn"),
    "core:gtin": ("gtin", "product.ean"),
    "core:condition": ("condition",),
    "core:category": ("categories.categoryName",),
    "core:image": ("image.url", "image.imageUrl"),
    "offer:price": ("price.amount", "price.value"),
    "offer:currency": ("price.currency",),
    "offer:availability": ("availability",),
    "offer:url": ("url", "itemWebUrl"),
}

_LEFT_OUT: Mapping[tuple[str, ...], str] = {
    ("id", "offer_id", "offerId", "itemId", "item_id", "product.id", "sku", "listing_id"): (
        "the marketplace's own number, which the record's key is made of"
    ),
    ("shipping", "shipping.*", "shippingOptions", "shippingOptions.*", "delivery", "delivery.*"): (
        "what it costs to send the article, which depends on where to: a policy of the seller's and not the offer"
    ),
    ("pickupOptions", "pickupOptions.*", "returns", "returns.*", "returnTerms.*", "warranty*"): (
        "a policy of the seller's, read from the policy and not from each of its offers"
    ),
    ("seller.*", "merchant.*", "rating*", "reviews*", "feedback*"): (
        "what the marketplace says of the seller beyond the name: its standing, which is no fact about the article"
    ),
    ("updated_at", "updatedAt", "created_at", "createdAt", "position", "rank"): (
        "when and where the marketplace lists the offer; a capture says when it was asked"
    ),
    (
        "links",
        "links.*",
        "_links",
        "_links.*",
    ): "addresses of other answers, each asked for as itself",
    ("offers",): "the offers of the item, each a record of its own",
}


FIELDS = declared({name: key for key, names in _STORED.items() for name in names}, _LEFT_OUT)
