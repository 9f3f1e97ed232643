"""The adapter: any WooCommerce shop, from the Store API that it serves to everybody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import cast
from weakref import WeakKeyDictionary

from prw_plugin_woocommerce.inventory import FIELDS, SURFACES, disposition
from prw_plugin_woocommerce.listing import ACCEPT, API, PAGE_SIZE, Products, listed
from prw_plugin_woocommerce.reading import PRODUCT, SITE, VARIATIONS, opened, records
from prw_plugin_woocommerce.settings import WooCommerceSettings
from prw_sdk.adapter import (
    Adapter,
    Batch,
    Checkpoint,
    Disposition,
    Fetched,
    Net,
    NetFailed,
    NotARecord,
    Source,
    Stated,
    Target,
)
from prw_sdk.adapter.naming import pinned
from prw_sdk.evidence import Capture, Part, Record
from prw_sdk.take import json_node, stated

COMPLETE = Checkpoint({"complete": True})
FRESH = timedelta(minutes=10)
"""So long one answer about the site itself stands for all its products."""

_SITE_FIELDS = "?_fields=name,description,url,home"
_NO_SITE = (401, 403, 404, 410)


class WooCommerce(Adapter):
    """Products found by the Store API; each read with its variations and the site's own entry."""

    name = "woocommerce"
    version = "0.1.0"
    settings = WooCommerceSettings
    surfaces = SURFACES
    fields = FIELDS
    merchant_field = "site.name"
    lists_everything = True

    def __init__(self) -> None:
        self._sites: WeakKeyDictionary[Net, Part] = WeakKeyDictionary()

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Every product, in the order of their numbers, so that what comes or goes meanwhile shifts nothing.

        A product with more variations than one page holds is a target for each page of them.
        """
        settings = cast(WooCommerceSettings, source.settings)
        state = {} if checkpoint is None else checkpoint.state
        after = int(str(state.get("after", 0)))
        found = await listed(settings, net)
        left = iter(sorted(number for number in found if number > after))
        while batch := tuple(islice(left, settings.batch_size)):
            targets = (target for number in batch for target in _targets(settings, number, found))
            yield Batch(tuple(targets), Checkpoint({"after": batch[-1]}))
        yield Batch((), COMPLETE)

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The product, a page of its variations where it has any, and the site's own entry."""
        product = await net.get(target.url, role=PRODUCT, accept=ACCEPT)
        parts = [product]
        interface, _, rest = target.url.partition(f"/{API}/")
        if _has_variations(product):
            page = target.native_id.partition("/")[2] or "1"
            query = f"type=variation&parent={rest}&per_page={PAGE_SIZE}&page={page}"
            url = f"{interface}/{API}?{query}&orderby=id&order=asc"
            parts.append(await net.get(url, role=VARIATIONS, accept=ACCEPT))
        site = await self._site(f"{interface}/{_SITE_FIELDS}", net)
        return Fetched((*parts, *([] if site is None else [site])))

    async def _site(self, url: str, net: Net) -> Part | None:
        """The site's own entry, asked for once in a while and not for every product."""
        known = self._sites.get(net)
        if known is not None and known.url_asked == url and _is_fresh(known):
            return known
        try:
            self._sites[net] = await net.get(url, role=SITE, accept=ACCEPT)
        except NetFailed as failed:
            if failed.status not in _NO_SITE:
                raise
            return None
        return self._sites[net]

    def read(self, capture: Capture) -> Iterable[Record]:
        """The product, or each of its variations; raises `NotARecord` where there is none."""
        return tuple(records(opened(capture), self.dispositions(capture)))

    def stated(self, capture: Capture) -> Iterable[Stated]:
        """Every labelled name of the parts; an attribute's value is called by the attribute's name."""
        return stated(opened(capture).leaves())

    def disposition(self, name: str, config: Mapping[str, object]) -> Disposition | None:
        """As declared, extended by the source's own settings."""
        return disposition(name, config)

    def config(self, source: Source) -> Mapping[str, object]:
        """The market's hints, and how the source names things."""
        return {
            **super().config(source),
            **pinned(source.settings, "attributes", "fields", "exclusions"),
        }


def _targets(settings: WooCommerceSettings, number: int, found: Products) -> Iterable[Target]:
    url = f"{settings.interface}/{API}/{number}"
    yield Target(str(number), url)
    for page in range(2, -(-found[number] // PAGE_SIZE) + 1):
        yield Target(f"{number}/{page}", url)


def _is_fresh(part: Part) -> bool:
    return datetime.now(UTC) - part.fetched_at < FRESH


def _has_variations(product: Part) -> bool:
    try:
        return bool(json_node(product).nodes("variations"))
    except NotARecord:
        return False
