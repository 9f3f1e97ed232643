"""The JSON-LD of a product page in the shapes that real shops use."""

from __future__ import annotations

from typing import Any

from prw_examples.street.model import Fact, Form, Listing, Page, Product, Shop
from prw_examples.street.words import additional

Node = dict[str, Any]


def structured_data(shop: Shop, page: Page) -> Node:
    """The page's JSON-LD document, by its form."""
    if page.form is Form.GRAPH:
        return {
            "@context": shop.schema,
            "@graph": [_site(shop), _web_page(shop, page), _single(shop, page)],
        }
    if page.form is Form.GROUP:
        return {"@context": shop.schema, **_group(shop, page)}
    return {"@context": shop.schema, **_single(shop, page)}


def _single(shop: Shop, page: Page) -> Node:
    listing = page.listings[0]
    node = {"@type": "Product", "@id": shop.url(page.path) + "#product", "url": shop.url(page.path)}
    node |= _article(listing, shop) | {"brand": _brand(listing.product)}
    if len(page.listings) == 1:
        node["sku"] = listing.sku
    return node | {"offers": _offers(shop, page)}


def _article(listing: Listing, shop: Shop) -> Node:
    node: Node = {"name": listing.title}
    if listing.stated(Fact.GTIN):
        node["gtin13"] = listing.product.gtin
    if listing.stated(Fact.GTIN14):
        node["gtin14"] = "0" + listing.product.gtin
    if listing.stated(Fact.MPN):
        node["mpn"] = listing.mpn
    node["additionalProperty"] = [
        {"@type": "PropertyValue", "name": name, "value": value}
        for name, value in additional(listing, shop.language)
    ]
    return node


def _brand(product: Product) -> Node:
    return {"@type": "Brand", "name": product.brand}


def _offers(shop: Shop, page: Page) -> Node | list[Node]:
    offers = [_offer(shop, page, listing) for listing in page.listings]
    if page.form is Form.OFFERS:
        return offers
    return _aggregate(shop, page, offers) if page.form is Form.AGGREGATE else offers[0]


def _aggregate(shop: Shop, page: Page, offers: list[Node]) -> Node:
    prices = [listing.price for listing in page.listings]
    return {
        "@type": "AggregateOffer",
        "lowPrice": str(min(prices)),
        "highPrice": str(max(prices)),
        "priceCurrency": shop.currency,
        "offerCount": len(offers),
        "offers": offers,
    }


def _offer(shop: Shop, page: Page, listing: Listing) -> Node:
    offer: Node = {
        "@type": "Offer",
        "url": shop.url(page.path),
        "sku": listing.sku,
        "price": str(listing.price),
        "priceCurrency": shop.currency,
        "availability": f"{shop.schema}/{'InStock' if listing.in_stock else 'OutOfStock'}",
        "seller": {"@type": "Organization", "name": listing.seller},
    }
    if listing.stated(Fact.CONDITION):
        offer["itemCondition"] = f"{shop.schema}/{listing.product.condition.capitalize()}Condition"
    return offer


def _group(shop: Shop, page: Page) -> Node:
    product = page.listings[0].product
    return {
        "@type": "ProductGroup",
        "name": page.title,
        "url": shop.url(page.path),
        "productGroupID": product.family,
        "brand": _brand(product),
        "variesBy": "https://schema.org/size",
        "hasVariant": [_variant(shop, page, listing) for listing in page.listings],
    }


def _variant(shop: Shop, page: Page, listing: Listing) -> Node:
    url = f"{shop.url(page.path)}?variant={listing.product.capacity_gb}"
    offer = _offer(shop, page, listing) | {"url": url}
    node = {"@type": "Product", "url": url, "sku": listing.sku}
    return node | _article(listing, shop) | {"offers": offer}


def _site(shop: Shop) -> Node:
    return {"@type": "WebSite", "@id": shop.url("/#site"), "name": shop.name, "url": shop.url("/")}


def _web_page(shop: Shop, page: Page) -> Node:
    url = shop.url(page.path)
    return {
        "@type": "WebPage",
        "@id": url,
        "name": page.title,
        "mainEntity": {"@id": f"{url}#product"},
    }
