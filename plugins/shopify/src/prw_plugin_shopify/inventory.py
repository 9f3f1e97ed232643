"""The declarations: what a Shopify storefront serves for one product, and what it labels there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from prw_sdk.adapter import Disposition, Excluded, Stored, matching
from prw_sdk.adapter.naming import declared, known_as, labelled, named, table

SELLER = "offer:seller"

SURFACES: Mapping[str, Disposition] = MappingProxyType(
    {
        "product-json": Stored("product"),
        "product-oembed": Stored("embed"),
        "shop-meta": Stored("shop"),
        "product-page": Excluded("a rendering of the product, whose data product.json holds"),
        "product-js": Excluded("the same product, its prices in hundredths whatever the currency"),
        "products-json": Excluded("the shop's index of products, each fetched as itself"),
        "collection-json": Excluded("an index of some of the products, each fetched as itself"),
        "product-image": Excluded("the picture itself; its address is kept as core:image"),
        "recommendations": Excluded("other products, each fetched as itself"),
        "reviews": Excluded("what buyers say, which is no fact about the article"),
        "cart": Excluded("a visitor's own basket"),
    }
)

_STORED: Mapping[str, str] = {
    "title": "core:title",
    "variants.title": "core:title",
    "vendor": "core:brand",
    "body_html": "core:description",
    "product_type": "core:category",
    "image.src": "core:image",
    "variants.sku": "core:sku",
    "variants.barcode": "core:gtin",
    "variants.price": "offer:price",
    "variants.price_currency": "offer:currency",
    "variants.available": "offer:availability",
    "embed.url": "core:url",
    "embed.provider": SELLER,
    "embed.offers.currency_code": "offer:currency",
    "embed.offers.in_stock": "offer:availability",
    "shop.name": SELLER,
    "shop.currency": "offer:currency",
}

_LEFT_OUT: Mapping[tuple[str, ...], str] = {
    ("id", "handle", "variants.id", "variants.product_id", "embed.product_id"): (
        "the number or name within the shop; it is the record's and the listing's key"
    ),
    ("admin_graphql_api_id", "variants.admin_graphql_api_id", "embed.offers.offer_id"): (
        "the same number again"
    ),
    ("option.*",): (
        "an option that stands for no attribute of the vocabulary; a source's `options` can name it"
    ),
    ("options", "options.*"): "which options there are; each variant states its own",
    ("variants.option1", "variants.option2", "variants.option3"): (
        "an option without a name; the variant's title states it too"
    ),
    ("variants.options", "variants.public_title", "variants.name"): (
        "the variant's title and options once more"
    ),
    ("variants.title.default",): "the title that Shopify gives to a product without variants",
    ("variants.barcode.other",): "a barcode that is no GTIN: the shop's own number",
    ("variants.compare_at_price*", "compare_at_price*"): (
        "a list price that is crossed out, and its currency; nobody is asked it"
    ),
    ("variants.quantity_price_breaks*", "variants.quantity_rule*", "variants.unit_price*"): (
        "a condition of buying many, or the price of a unit of measure; a record is one piece"
    ),
    ("variants.taxable", "variants.tax_code", "variants.requires_*", "variants.fulfillment_*"): (
        "how the merchant sells and sends, not what"
    ),
    ("variants.grams", "variants.weight", "variants.weight_unit"): (
        "a measure that no class of the vocabulary asks for"
    ),
    ("variants.inventory_*", "variants.old_inventory_quantity"): (
        "how the merchant keeps its stock, beside whether there is any"
    ),
    ("variants.position", "variants.image_id", "variants.featured_image*"): (
        "the variant's place and picture in the shop"
    ),
    ("images", "images.*", "image", "image.*", "media", "media.*", "featured_image*"): (
        "a picture beside the main one, or more about a picture than its address"
    ),
    ("tags", "template_suffix", "published_scope"): "the shop's own way of sorting and showing",
    ("variants",): "a product without variants has nothing to sell",
    ("*created_at", "*updated_at", "*published_at"): (
        "when the shop edited the entry; a capture says when it was seen"
    ),
    ("embed.title", "embed.description", "embed.brand", "embed.offers.title"): (
        "the article again, as product.json states it"
    ),
    ("embed.offers.sku", "embed.offers.price"): (
        "the offer again, its price with the closing zeros left out"
    ),
    ("embed.thumbnail_url", "embed.version", "embed.type", "embed.offers", "embed.html"): (
        "how the entry is embedded elsewhere"
    ),
    ("embed.provider_url", "embed.author*", "embed.cache_age", "embed.width", "embed.height"): (
        "how the entry is embedded elsewhere"
    ),
    ("shop.*",): "more about the shop than its name and currency",
}


FIELDS = declared(_STORED, _LEFT_OUT)

_LABELS: Mapping[str, tuple[str, ...]] = {
    "storage:capacity": ("capacity", "storage", "storage capacity", "kapazität", "speicher"),
    "storage:heatsink": ("heatsink", "heat sink", "kühlkörper"),
    "storage:interface": ("interface", "schnittstelle"),
    "storage:form_factor": ("form factor", "formfaktor", "bauform"),
    "core:pack_quantity": ("pack", "pack size", "pack quantity", "packungsgröße", "menge"),
    "core:condition": ("condition", "zustand"),
}
OPTIONS = labelled(_LABELS)
"""What shops call an option, folded as by the SDK's `folded`, and what it is."""


def disposition(name: str, config: Mapping[str, object]) -> Disposition | None:
    """How a stated name is accounted for: by the source's own settings first.

    Where those name another field as the seller, the shop's own name is not taken for it (rule 15).
    """
    own = named(config, name)
    if own is not None:
        return own
    if name.startswith("option."):
        attribute = known_as(name.removeprefix("option."), OPTIONS, config, "options")
        if attribute is not None:
            return Stored(attribute)
    found = matching(FIELDS, name)
    if (
        isinstance(found, Stored)
        and found.target == SELLER
        and SELLER in table(config, "fields").values()
    ):
        return Excluded("the publisher, where the source's settings name the field of the seller")
    return found
