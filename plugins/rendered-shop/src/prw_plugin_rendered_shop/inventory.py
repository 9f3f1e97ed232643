"""The declarations: what a shop shows of one product, and what it labels there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from prw_sdk.adapter import Disposition, Excluded, Stored
from prw_sdk.take import SELLER

PAGE, DATA = "page", "data"

SURFACES: Mapping[str, Disposition] = MappingProxyType(
    {
        "product-page": Stored(PAGE),
        "product-page-as-served": Stored(f"{PAGE}.source"),
        "product-page-as-seen": Stored(f"{PAGE}.screenshot"),
        "product-data": Stored(DATA),
        "shipping-policy": Stored("policy.shipping"),
        "returns-policy": Stored("policy.returns"),
        "warranty-policy": Stored("policy.warranty"),
        "category-page": Excluded("a list of links to products, each opened as itself"),
        "product-image": Excluded(
            "the picture itself; its address is kept, and the screenshot shows it"
        ),
        "review-page": Excluded("what buyers say, which is no fact about the article"),
        "cart": Excluded("a state of the visit and no statement about the article"),
    }
)

FIELDS: Mapping[str, Disposition] = MappingProxyType(
    {
        "title": Stored("core:title"),
        "brand": Stored("core:brand"),
        "description": Stored("core:description"),
        "image": Stored("core:image"),
        "price": Stored("offer:price"),
        "availability": Stored("offer:availability"),
        "seller": Stored(SELLER),
        "specs.Capacity": Stored("storage:capacity"),
        "specs.Condition": Stored("core:condition"),
        "specs.EAN": Stored("core:gtin"),
        "specs.Heatsink": Stored("storage:heatsink"),
        "specs.Interface": Stored("storage:interface"),
        "specs.Part number": Stored("core:mpn"),
        "policy.shipping": Stored("policy:shipping"),
        "policy.returns": Stored("policy:returns"),
        "policy.warranty": Stored("policy:warranty"),
        "specs.Rating": Excluded("what buyers say, which is no fact about the article"),
    }
)
