"""Which products a shop lists: its pages, read until nothing new comes, whatever moves meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote, urlsplit

from prw_plugin_shopify.settings import ShopifySettings
from prw_sdk.adapter import Net, NetFailed
from prw_sdk.evidence import Part
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.take import parsed

PAGE_SIZE = 250
MOST_PAGES = 1000
MOST_WALKS = 3
ACCEPT = "application/json"

_TOO_FAR = (400, 404, 422)
Handles = dict[int, str]
"""The handle of each product by its number."""


class NoProducts(Exception):
    """What the address answers is no list of a Shopify shop's products."""


async def listed(settings: ShopifySettings, net: Net) -> Handles:
    """Every product of the shop, or of its collections, by number.

    A list of several pages is walked again until a walk finds nothing new (at most `MOST_WALKS` times), since a product
    that goes lets others slip to a page that was already read.
    """
    found: Handles = {}
    base = settings.address
    for handle in settings.collections or (None,):
        within = base if handle is None else f"{base}/collections/{quote(handle)}"
        await _Walks(net, f"{within}/products.json", found).go()
    return found


def unlocked(part: Part) -> Part:
    """The part, unless the shop asks for a password instead; raises `FetchFailed` (LOGIN_PAGE)."""
    if urlsplit(part.url_reached).path.rstrip("/").endswith("/password"):
        raise FetchFailed(
            Outcome.LOGIN_PAGE, "the shop asks for a password", url=part.url_asked, status=200
        )
    return part


class _Walks:
    def __init__(self, net: Net, address: str, found: Handles) -> None:
        self._net = net
        self._address = address
        self._found = found

    async def go(self) -> None:
        for _ in range(MOST_WALKS):
            before = len(self._found)
            pages = await self._by_page()
            if pages < 2 or len(self._found) == before:
                return

    async def _by_page(self) -> int:
        """One walk by page numbers; the pages that held something.

        Where the shop refuses a later number, or gives the same page for each, the walk goes on by product numbers.
        """
        walked: Handles = {}
        for number in range(1, MOST_PAGES + 1):
            try:
                page = await self._page(f"page={number}")
            except NetFailed as failed:
                if number == 1 or failed.status not in _TOO_FAR:
                    raise
                page = walked
            if not page:
                return number - 1
            is_stuck = page.keys() <= walked.keys()
            walked.update(page)
            self._found.update(page)
            if is_stuck:
                await self._by_number()
                return number
        raise NoProducts(
            f"{self._address} has more than {MOST_PAGES} pages: name some of its `collections`"
        )

    async def _by_number(self) -> None:
        last = 0
        for _ in range(MOST_PAGES):
            page = await self._page(f"since_id={last}")
            if not page or max(page) <= last:
                return
            self._found.update(page)
            last = max(page)

    async def _page(self, which: str) -> Handles:
        part = await self._net.get(
            f"{self._address}?limit={PAGE_SIZE}&{which}", role="list", accept=ACCEPT
        )
        return dict(_products(unlocked(part)))


def _products(part: Part) -> Iterator[tuple[int, str]]:
    try:
        value = parsed(part.text())
    except ValueError:
        value = None
    products = value.get("products") if isinstance(value, Mapping) else None
    if not isinstance(products, list):
        raise NoProducts(
            f"{part.url_asked} holds no list of products: is `shop` the address of a Shopify shop?"
        )
    for one in products:
        number, handle = (one.get("id"), one.get("handle")) if isinstance(one, Mapping) else (0, 0)
        if isinstance(number, str) and number.isdecimal() and isinstance(handle, str) and handle:
            yield int(number), handle
