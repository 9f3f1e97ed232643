"""The declarations: what a feed is served as, and what it labels; the names are those of Google's product data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from prw_sdk.adapter import Disposition, Excluded, Stored, matching
from prw_sdk.adapter.naming import declared, folded, labelled, named, table

SELLER = "offer:seller"

SURFACES: Mapping[str, Disposition] = MappingProxyType(
    {
        "feed": Stored("feed"),
        "feed-as-sent": Stored("packed"),
        "product-page": Excluded(
            "the page that the feed links to, which an adapter for shop pages reads"
        ),
        "product-image": Excluded("the picture itself; its address is kept as core:image"),
        "promotions-feed": Excluded("a merchant's promotions over many products, not what is sold"),
        "local-inventory-feed": Excluded("the stock of single branches, of the same products"),
    }
)

_STORED: Mapping[str, str] = {
    "id": "core:sku",
    "title": "core:title",
    "description": "core:description",
    "link": "core:url",
    "image_link": "core:image",
    "brand": "core:brand",
    "gtin": "core:gtin",
    "mpn": "core:mpn",
    "condition": "core:condition",
    "multipack": "core:pack_quantity",
    "product_type": "core:category",
    "price": "offer:price",
    "sale_price": "offer:price",
    "currency": "offer:currency",
    "availability": "offer:availability",
    "seller": SELLER,
    "channel.author.name": SELLER,
    "channel.title": SELLER,
}

_LEFT_OUT: Mapping[tuple[str, ...], str] = {
    ("detail.*",): (
        "a detail that stands for no attribute of the vocabulary; a source's `fields` can name it"
    ),
    ("product_detail", "product_detail.*"): (
        "where and how a detail is listed; its value is stated under its own name"
    ),
    ("item_group_id", "item_group_title", "variant_option*"): (
        "how variants belong together; each is a record of its own"
    ),
    ("multipack.none",): "a pack of none, by which Google takes an earlier statement back",
    ("guid", "guid.*", "updated", "published", "pubdate", "pubDate", "summary", "content"): (
        "the entry as a piece of news; its product's own fields state the article"
    ),
    ("identifier_exists", "is_bundle", "adult", "age_group", "gender", "certification*"): (
        "a statement for an advertisement's rules, not about the article itself"
    ),
    ("color", "size", "size_type", "size_system", "material", "pattern"): (
        "a trait that no class of the vocabulary asks for"
    ),
    ("product_length", "product_width", "product_height", "product_weight", "unit_pricing_*"): (
        "a measure that no class of the vocabulary asks for"
    ),
    ("google_product_category", "google_product_category.*", "product_highlight*"): (
        "Google's own way of sorting, and a merchant's praise"
    ),
    (
        *("additional_image_link*", "lifestyle_image_link", "virtual_model_link", "video_link"),
        *("mobile_link", "canonical_link", "ads_redirect", "link_template", "link.*"),
    ): "another picture or address of the same article",
    ("sale_price_effective_date", "availability_date", "expiration_date", "disclosure_date"): (
        "until or from when something holds; a sale price is claimed only while it does"
    ),
    (
        *("shipping", "shipping.*", "shipping(*", "shipping_*", "ships_from_country"),
        *("tax", "tax.*", "tax(*", "tax_category", "min_handling_time", "max_handling_time"),
        *("minimum_order_value*", "free_shipping_threshold*", "transit_time_label"),
        *("return_policy_label", "handling_cutoff*", "carrier_shipping*"),
    ): "a merchant's policy, read from the merchant's own policy pages",
    ("installment*", "subscription_cost*", "loyalty_*", "auto_pricing_min_price", "maximum_*"): (
        "a way of paying, or a bound of prices that nobody is asked"
    ),
    ("cost_of_goods_sold", "promotion_id", "custom_label_*", "ads_*", "display_ads_*"): (
        "how the merchant advertises"
    ),
    ("excluded_destination", "included_destination", "shopping_ads_excluded_country", "pause"): (
        "where the merchant advertises"
    ),
    ("energy_efficiency_class", "min_energy_*", "max_energy_*"): (
        "a certificate that no class of the vocabulary asks for"
    ),
    ("external_seller_id", "merchant_id", "seller_id"): (
        "a number of the seller, who is known by name"
    ),
    ("pickup_*", "sell_on_google_quantity", "quantity", "stock_quantity"): (
        "how much of it there is and where, beside whether there is any"
    ),
    ("beyond the header",): "cells that stand under no column, whose row cannot be told apart",
    ("broken row",): "a row that no reader of tables can read, as one with a stray line break",
    ("channel.publisher",): "the publisher, where the source's settings say that it is no seller",
    ("channel.*",): "more about the feed than who publishes it",
}


FIELDS = declared(_STORED, _LEFT_OUT)

_LABELS: Mapping[str, tuple[str, ...]] = {
    "storage:capacity": ("capacity", "storage capacity", "kapazität", "speicherkapazität"),
    "storage:heatsink": ("heatsink", "heat sink", "kühlkörper"),
    "storage:interface": ("interface", "schnittstelle"),
    "storage:form_factor": ("form factor", "formfaktor", "bauform"),
}
_DETAILS = labelled(_LABELS)


def disposition(name: str, config: Mapping[str, object]) -> Disposition | None:
    """How a stated name is accounted for: by the source's own settings first.

    The publisher is no seller where the settings say so, or name another field as the seller (rule 15).
    """
    own = named(config, name)
    if own is not None:
        return own
    if name.startswith("detail."):
        attribute = _DETAILS.get(folded(name.removeprefix("detail.")))
        if attribute is not None:
            return Stored(attribute)
    found = matching(FIELDS, name)
    is_publisher = name.startswith("channel.") and isinstance(found, Stored)
    if is_publisher and (
        config.get("publisher_is_seller") is False or SELLER in table(config, "fields").values()
    ):
        return FIELDS["channel.publisher"]
    return found
