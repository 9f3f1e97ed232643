"""Small shops on a site on loopback, one for each plugin, and the jobs that collect them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any

from prw_plugin_merchant_feed import MerchantFeed
from prw_plugin_schemaorg import SchemaOrg
from prw_plugin_shopify import Shopify
from prw_plugin_woocommerce import WooCommerce
from prw_sdk.adapter import Adapter, Source
from prw_sdk.collect import SourceJob
from prw_sdk.testing.server import Site, answer
from tests.sdk.jobs import net_config

JSON = "application/json; charset=utf-8"
SIZE = 5
"""Products of each shop."""


def served(site: Site, path: str, value: object, *, status: int = 200) -> None:
    """Answer a path with JSON."""
    site.serve(path, answer(json.dumps(value).encode(), status=status, content_type=JSON))


def shopify(site: Site) -> Mapping[str, Any]:
    """Two pages of products, and of one product no more than its 404."""
    numbers = list(range(1, SIZE + 1))
    for at, some in enumerate((numbers[:3], numbers[3:], []), start=1):
        listed = [{"id": n, "handle": f"p{n}"} for n in some]
        served(site, f"/products.json?limit=250&page={at}", {"products": listed})
    for n in numbers[:-1]:
        variant = {"id": n * 10, "title": "Default Title", "price": f"{n}.50", "sku": f"S{n}"}
        product = {"id": n, "title": f"Product {n}", "vendor": "Ravn", "variants": [variant]}
        offer = {"offer_id": n * 10, "currency_code": "EUR", "in_stock": True}
        embed = {"provider": "A shop", "offers": [offer], "url": site.url(f"/products/p{n}")}
        served(site, f"/products/p{n}.json", {"product": product})
        served(site, f"/products/p{n}.oembed", embed)
    return {"shop": site.origin, "batch_size": 2}


def woocommerce(site: Site) -> Mapping[str, Any]:
    """One page of products, and of one product no more than its 404."""
    api, numbers = "/wp-json/wc/store/v1/products", list(range(1, SIZE + 1))
    for at, some in enumerate((numbers, []), start=1):
        query = f"?per_page=100&orderby=id&order=asc&page={at}"
        served(site, f"{api}{query}", [{"id": n, "variations": []} for n in some])
    for n in numbers[:-1]:
        prices = {"price": f"{n}50", "currency_code": "EUR", "currency_minor_unit": 2}
        html = f'<span class="woocommerce-Price-amount amount">{n},50&nbsp;&euro;</span>'
        product = {"id": n, "name": f"Product {n}", "type": "simple", "prices": prices}
        served(site, f"{api}/{n}", {**product, "price_html": html})
    served(site, "/wp-json/?_fields=name,description,url,home", {"name": "A shop"})
    return {"shop": site.origin, "batch_size": 2}


def merchant_feed(site: Site) -> Mapping[str, Any]:
    """Feeds that list one product each: in XML, in a table, packed, and one that is gone."""
    xml = b"<rss><channel><title>A shop</title><item><id>1</id><title>P</title></item></channel></rss>"
    table = b"id\ttitle\tprice\tseller\n1\tP\t1.00 EUR\tA shop\n"
    bodies = {
        "/feed.xml": (xml, "application/rss+xml"),
        "/feed.tsv": (table, "text/plain"),
        "/feed.tsv.gz": (gzip.compress(table, mtime=0), "application/gzip"),
        "/mistyped.xml": (xml, "text/html"),
    }
    for path, (body, kind) in bodies.items():
        site.serve(path, answer(body, content_type=kind))
    return {"feeds": [site.url(path) for path in (*bodies, "/gone.xml")]}


def schemaorg(site: Site) -> Mapping[str, Any]:
    """Pages that a sitemap lists, and one that is gone."""
    numbers = range(1, SIZE + 1)
    listed = "".join(f"<url><loc>{site.url(f'/p{n}')}</loc></url>" for n in numbers)
    site.serve("/sitemap.xml", answer(f"<urlset>{listed}</urlset>".encode()))
    for n in numbers[:-1]:
        product = {"@type": "Product", "name": f"Product {n}", "sku": f"S{n}"}
        script = f'<script type="application/ld+json">{json.dumps(product)}</script>'
        site.serve(f"/p{n}", answer(script.encode()))
    return {"sitemaps": [site.url("/sitemap.xml")], "batch_size": 2}


SHOPS: Mapping[str, tuple[type[Adapter], Callable[[Site], Mapping[str, Any]]]] = {
    "shopify": (Shopify, shopify),
    "woocommerce": (WooCommerce, woocommerce),
    "merchant-feed": (MerchantFeed, merchant_feed),
    "schemaorg": (SchemaOrg, schemaorg),
}


def job(name: str, site: Site) -> SourceJob:
    """The job over the shop of that plugin, which is put on the site."""
    adapter, shop = SHOPS[name]
    source = Source("src_shop", adapter.settings(**shop(site)), currency="EUR")
    return SourceJob("ten_synth_a", source, adapter(), net_config(site))
