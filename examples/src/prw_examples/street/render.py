"""Turn the street's values into the bytes that its storefronts serve."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from prw_examples.street.jsonld import Node, structured_data
from prw_examples.street.model import Fact, Form, Listing, Page, Shop
from prw_examples.street.words import CONDITIONS, LABELS, SELLER, STOCK, additional, money

TEMPLATES = {Form.MICRODATA: "microdata", Form.BROKEN: "microdata", Form.OPENGRAPH: "opengraph"}
NEIGHBOURS = 4


@cache
def _templates() -> Environment:
    loader = PackageLoader("prw_examples.street", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)


def product_page(shop: Shop, page: Page) -> bytes:
    """The page in the encoding that it declares."""
    template = _templates().get_template(TEMPLATES.get(page.form, "jsonld") + ".html.j2")
    return template.render(_view(shop, page)).encode(page.encoding)


def text_page(shop: Shop, title: str, pages: Iterable[Page] = ()) -> bytes:
    """A page without a product; the storefront's front page lists `pages`."""
    template = _templates().get_template("text.html.j2")
    return template.render(shop=shop, title=title, pages=list(pages)).encode()


def sitemap(urls: Iterable[str]) -> bytes:
    """A sitemap of pages (sitemaps.org 0.9)."""
    return _urls("urlset", "url", urls)


def sitemap_index(urls: Iterable[str]) -> bytes:
    """A sitemap of sitemaps (sitemaps.org 0.9)."""
    return _urls("sitemapindex", "sitemap", urls)


def robots(shop: Shop) -> bytes:
    """The shop's robots.txt (RFC 9309), without a crawl delay."""
    rules = [f"Disallow: {prefix}" for prefix in shop.forbids] or ["Disallow:"]
    return "\n".join(["User-agent: *", *rules, f"Sitemap: {shop.url('/sitemap.xml')}", ""]).encode()


def _urls(outer: str, inner: str, urls: Iterable[str]) -> bytes:
    template = _templates().get_template("urls.xml.j2")
    return template.render(outer=outer, inner=inner, urls=list(urls)).encode()


def _view(shop: Shop, page: Page) -> dict[str, Any]:
    return {
        "shop": shop,
        "page": page,
        "url": shop.url(page.path),
        "article": page.listings[0],
        "rows": [_row(shop, listing) for listing in page.listings],
        "structured_data": _script(structured_data(shop, page)),
        "broken": _broken(shop, page) if page.form is Form.BROKEN else "",
        "neighbours": _neighbours(shop, page),
        "sold_by": SELLER[shop.language],
        "labels": LABELS[shop.language],
        "fact": Fact,
    }


def _row(shop: Shop, listing: Listing) -> dict[str, Any]:
    return {
        "listing": listing,
        "money": money(listing.price, shop),
        "stock": STOCK[shop.language][listing.in_stock],
        "condition": CONDITIONS[shop.language][listing.product.condition],
        "additional": additional(listing, shop.language),
    }


def _neighbours(shop: Shop, page: Page) -> list[Page]:
    pages = [other for other in shop.allowed_pages() if other is not page]
    start = shop.pages.index(page)
    return (pages * 2)[start : start + NEIGHBOURS]


def _broken(shop: Shop, page: Page) -> Markup:
    """The page's JSON-LD as a careless template leaves it: cut in the middle of a string."""
    text = _script(structured_data(shop, page))
    return text[: text.index(page.listings[0].sku) + 2]


def _script(document: Node) -> Markup:
    return htmlsafe_json_dumps(document, ensure_ascii=False)
