"""Which products a shop lists: its pages, read until nothing new comes, whatever moves meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from prw_plugin_woocommerce.settings import WooCommerceSettings
from prw_sdk.adapter import Net, NetFailed
from prw_sdk.evidence import Part
from prw_sdk.take import parsed

PAGE_SIZE = 100
MOST_PAGES = 2000
MOST_WALKS = 3
ACCEPT = "application/json"
API = "wc/store/v1/products"

Products = dict[int, int]
"""How many variations each product has, by its number."""


class NoProducts(Exception):
    """What the address answers is no list of a WooCommerce shop's products."""


async def listed(settings: WooCommerceSettings, net: Net) -> Products:
    """Every product of the shop, or of its categories, by number.

    A list of several pages is walked again until a walk finds nothing new (at most `MOST_WALKS` times), since a product
    that goes lets others slip to a page that was already read.
    """
    found: Products = {}
    address = f"{settings.interface}/{API}?per_page={PAGE_SIZE}&orderby=id&order=asc"
    for category in settings.categories or (None,):
        within = address if category is None else f"{address}&category={quote(category)}"
        for _ in range(MOST_WALKS):
            before = len(found)
            if await _walk(net, within, found) < 2 or len(found) == before:
                break
    return found


async def _walk(net: Net, address: str, found: Products) -> int:
    """One walk; how many pages there were.

    The site says how many (``X-WP-TotalPages``); where it does not, the first page without a new product is the end.
    """
    walked: Products = {}
    for number in range(1, MOST_PAGES + 1):
        page, pages = await _page(net, f"{address}&page={number}", is_first=number == 1)
        is_over = page.keys() <= walked.keys() if pages is None else number > pages
        if is_over:
            return number - 1
        walked.update(page)
        found.update(page)
        if number == pages:
            return number
    raise NoProducts(
        f"{address} has more than {MOST_PAGES} pages: name some of its `categories` instead"
    )


async def _page(net: Net, url: str, *, is_first: bool) -> tuple[Products, int | None]:
    try:
        part = await net.get(url, role="list", accept=ACCEPT)
    except NetFailed as failed:
        if not is_first and failed.status == 400:
            return {}, None
        if is_first and failed.status in (404, 410):
            raise NoProducts(
                f"{url} answers {failed.status}: is `shop` a WooCommerce shop, and `rest` right?"
            ) from failed
        raise
    stated = dict(part.headers).get("x-wp-totalpages", "")
    return dict(_products(part)), int(stated) if stated.isdecimal() else None


def _products(part: Part) -> Iterator[tuple[int, int]]:
    try:
        products = parsed(part.text())
    except ValueError:
        products = None
    if not isinstance(products, list):
        raise NoProducts(
            f"{part.url_asked} holds no list of products: is `shop` a WooCommerce shop?"
        )
    for one in products:
        number = one.get("id") if isinstance(one, Mapping) else None
        if isinstance(number, str) and number.isdecimal():
            variations = one.get("variations")
            yield int(number), len(variations) if isinstance(variations, list) else 0
