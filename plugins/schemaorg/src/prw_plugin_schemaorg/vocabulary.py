"""Which stated name is kept under which attribute: one table that the readers and the inventory share.

A path is dotted; the first path of an attribute that states something wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TITLE = "core:title"
BRAND = "core:brand"
MPN = "core:mpn"
GTIN = "core:gtin"
SKU = "core:sku"
CONDITION = "core:condition"
PACK = "core:pack_quantity"
IMAGE = "core:image"
URL = "core:url"
DESCRIPTION = "core:description"
CAPACITY = "storage:capacity"
HEATSINK = "storage:heatsink"
INTERFACE = "storage:interface"
FORM_FACTOR = "storage:form_factor"
PRICE = "offer:price"
CURRENCY = "offer:currency"
AVAILABILITY = "offer:availability"
SELLER = "offer:seller"
OFFER_URL = "offer:url"

Paths = Mapping[str, tuple[str, ...]]

_GTINS = ("gtin13", "gtin14", "gtin12", "gtin8", "gtin", "isbn")

PRODUCT: Paths = MappingProxyType(
    {
        TITLE: ("name",),
        BRAND: ("brand.name", "brand"),
        MPN: ("mpn",),
        GTIN: _GTINS,
        SKU: ("sku",),
        CONDITION: ("itemCondition",),
        URL: ("url",),
        IMAGE: ("image", "image.url", "image.contentUrl"),
        DESCRIPTION: ("description",),
    }
)
"""What a schema.org Product states of the article itself."""

OFFER: Paths = MappingProxyType(
    {
        MPN: ("mpn", "itemOffered.mpn"),
        GTIN: (*_GTINS, *(f"itemOffered.{name}" for name in _GTINS)),
        SKU: ("sku", "itemOffered.sku"),
        CONDITION: ("itemCondition",),
        AVAILABILITY: ("availability",),
        OFFER_URL: ("url",),
    }
)
"""What a schema.org Offer states; it speaks of one seller's piece, so it wins over the Product."""

OFFER_SELLER = ("seller.name", "seller", "offeredBy.name", "offeredBy")

OPENGRAPH: Paths = MappingProxyType(
    {
        TITLE: ("og:title",),
        BRAND: ("product:brand", "og:brand"),
        MPN: ("product:mfr_part_no",),
        GTIN: ("product:gtin", "product:ean", "product:upc", "product:isbn", "og:upc", "og:isbn"),
        SKU: ("product:retailer_item_id",),
        CONDITION: ("product:condition", "og:condition"),
        URL: ("og:url",),
        IMAGE: ("og:image", "og:image:url", "og:image:secure_url"),
        DESCRIPTION: ("og:description",),
    }
)
OPENGRAPH_PRICES = (
    ("product:sale_price:amount", "product:sale_price:currency"),
    ("product:price:amount", "product:price:currency"),
    ("og:price:amount", "og:price:currency"),
)
"""An amount and its currency belong together; a sale price is the one that is asked."""

OPENGRAPH_AVAILABILITY = ("product:availability", "og:availability")

SITE_NAME = "og:site_name"
SITE_TYPES = ("WebSite", "Organization", "OnlineStore", "OnlineBusiness", "Corporation")
"""Whose own name is the name of the site's owner; a LocalBusiness on a page is often just a branch."""

_LABELS: Mapping[str, tuple[str, ...]] = {
    CAPACITY: (
        "capacity",
        "storage capacity",
        "ssd capacity",
        "hard drive capacity",
        "kapazität",
        "speicherkapazität",
    ),
    HEATSINK: ("heatsink", "heat sink", "with heatsink", "kühlkörper", "mit kühlkörper"),
    INTERFACE: ("interface", "schnittstelle"),
    FORM_FACTOR: ("form factor", "formfaktor", "bauform"),
    PACK: (
        "pack quantity",
        "pack size",
        "package quantity",
        "number of items",
        "packungsgröße",
        "packungsmenge",
        "packungsinhalt",
        "menge",
        "stückzahl",
    ),
    CONDITION: ("condition", "zustand", "artikelzustand"),
    BRAND: ("brand", "marke"),
    MPN: (
        "mpn",
        "part number",
        "manufacturer part number",
        "herstellernummer",
        "hersteller-artikelnummer",
        "herstellerartikelnummer",
    ),
    GTIN: ("gtin", "gtin-8", "gtin-12", "gtin-13", "gtin-14", "ean", "upc", "isbn"),
    SKU: ("sku",),
}

PROPERTIES: Mapping[str, str] = MappingProxyType(
    {label: attribute for attribute, labels in _LABELS.items() for label in labels}
)
"""What shops call a property (`additionalProperty`, `identifier`), folded as by `folded`, and what it is."""
