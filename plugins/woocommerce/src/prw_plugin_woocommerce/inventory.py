"""The declarations: what a WooCommerce shop serves for one product, and what it labels there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from prw_sdk.adapter import Disposition, Excluded, Stored, matching
from prw_sdk.adapter.naming import declared, known_as, labelled, named, table

SELLER = "offer:seller"
PRICE = "offer:price"

SURFACES: Mapping[str, Disposition] = MappingProxyType(
    {
        "product": Stored("product"),
        "variations": Stored("variations"),
        "site": Stored("site"),
        "product-list": Excluded("the shop's index of products, each fetched as itself"),
        "product-page": Excluded("a rendering of the product, whose data the Store API holds"),
        "product-image": Excluded("the picture itself; its address is kept as core:image"),
        "reviews": Excluded("what buyers say, which is no fact about the article"),
        "cart": Excluded("a visitor's own basket"),
        "rest-v3": Excluded("the merchant's own interface, which asks for the merchant's key"),
    }
)

_STORED: Mapping[str, str] = {
    "name": "core:title",
    "variation": "core:title",
    "sku": "core:sku",
    "brands.name": "core:brand",
    "categories.name": "core:category",
    "description": "core:description",
    "permalink": "core:url",
    "images.src": "core:image",
    "price_html": PRICE,
    "prices.price": PRICE,
    "prices.currency_code": "offer:currency",
    "is_in_stock": "offer:availability",
    "stock_availability.class": "offer:availability",
    "site.name": SELLER,
}

_LEFT_OUT: Mapping[tuple[str, ...], str] = {
    ("id", "slug", "parent", "type"): (
        "the number, name and kind within the shop; the number is the record's and the listing's key"
    ),
    ("attribute.*",): (
        "an attribute that stands for none of the vocabulary; a source's `attributes` can name it"
    ),
    ("attributes", "attributes.*", "variations", "variations.*", "has_options"): (
        "which attributes and variations there are; each value is stated under its attribute's name"
    ),
    ("short_description",): "the beginning of the description, in the shop's words",
    ("prices.minor_units", "price_html.other"): (
        "the price in hundredths, or as a range, where no single amount is written out"
    ),
    ("prices.regular_price", "prices.sale_price", "prices.price_range*", "on_sale"): (
        "the list price that is crossed out, the price once more, or the bounds of several"
    ),
    ("prices.currency_*", "prices.raw_prices*"): "how the shop writes amounts",
    ("is_in_stock.backorder", "is_on_backorder", "low_stock_remaining"): (
        "more about the stock, whose class says whether there is any"
    ),
    ("stock_availability", "stock_availability.text", "sold_individually", "quantity_limits*"): (
        "more about the stock, whose class says whether there is any"
    ),
    ("is_purchasable", "is_password_protected", "add_to_cart", "add_to_cart.*"): (
        "how the product is put into a basket"
    ),
    ("average_rating", "review_count", "rating_counts*"): (
        "what buyers say, which is no fact about the article"
    ),
    ("images", "images.*"): "a picture beside the main one, or more about it than its address",
    ("categories", "categories.*", "tags", "tags.*", "brands", "brands.*"): (
        "the shop's own way of sorting, beyond the names of category and brand"
    ),
    ("weight", "dimensions*", "formatted_*"): "a measure that no class of the vocabulary asks for",
    ("grouped_products*", "related*", "upsell*", "cross_sell*"): (
        "other products, each fetched as itself"
    ),
    ("extensions", "extensions.*"): (
        "what other plugins of the shop add; a source's `fields` can name it"
    ),
    ("_links", "_links.*"): "where else the interface speaks of the product",
    ("site.*",): "more about the site than its name",
    ("site.name.publisher",): (
        "the publisher of a product that another shop sells, or whose seller another field names"
    ),
}


FIELDS = declared(_STORED, _LEFT_OUT)

_LABELS: Mapping[str, tuple[str, ...]] = {
    "storage:capacity": ("capacity", "storage", "storage capacity", "kapazität", "speicher"),
    "storage:heatsink": ("heatsink", "heat sink", "kühlkörper"),
    "storage:interface": ("interface", "schnittstelle"),
    "storage:form_factor": ("form factor", "formfaktor", "bauform"),
    "core:pack_quantity": ("pack", "pack size", "pack quantity", "packungsgröße", "menge"),
    "core:condition": ("condition", "zustand"),
    "core:brand": ("brand", "marke", "hersteller"),
    "core:mpn": ("mpn", "part number", "manufacturer part number", "herstellernummer"),
    "core:gtin": ("gtin", "ean", "upc", "isbn"),
}
ATTRIBUTES = labelled(_LABELS)
"""What shops call an attribute, folded as by the SDK's `folded`, and what it is."""


def disposition(name: str, config: Mapping[str, object]) -> Disposition | None:
    """How a stated name is accounted for: by the source's own settings first.

    Where those name another field as the seller, the site's own name is not taken for it (rule 15).
    """
    own = named(config, name)
    if own is not None:
        return own
    if name.startswith("attribute."):
        attribute = known_as(name.removeprefix("attribute."), ATTRIBUTES, config, "attributes")
        if attribute is not None:
            return Stored(attribute)
    found = matching(FIELDS, name)
    if (
        isinstance(found, Stored)
        and found.target == SELLER
        and SELLER in table(config, "fields").values()
    ):
        return FIELDS["site.name.publisher"]
    return found
