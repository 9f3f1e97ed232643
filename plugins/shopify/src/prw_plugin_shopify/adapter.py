"""The adapter: any Shopify shop, from what its storefront serves as JSON to everybody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice
from typing import cast
from urllib.parse import quote

from prw_plugin_shopify.inventory import FIELDS, SURFACES, disposition
from prw_plugin_shopify.listing import ACCEPT, listed, unlocked
from prw_plugin_shopify.reading import EMBED, PRODUCT, SHOP, opened, records
from prw_plugin_shopify.settings import ShopifySettings
from prw_sdk.adapter import (
    Adapter,
    Batch,
    Checkpoint,
    Disposition,
    Fetched,
    Net,
    NetFailed,
    Source,
    Stated,
    Target,
)
from prw_sdk.adapter.naming import pinned
from prw_sdk.evidence import Capture, Part, Record
from prw_sdk.take import stated

COMPLETE = Checkpoint({"complete": True})

_ABSENT = (404, 410)


class Shopify(Adapter):
    """Products found by products.json; each read with its embed, which names the shop and the currency."""

    name = "shopify"
    version = "0.1.0"
    settings = ShopifySettings
    surfaces = SURFACES
    fields = FIELDS
    merchant_field = "embed.provider"
    lists_everything = True

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Every product, in the order of their numbers, so that what comes or goes meanwhile shifts nothing."""
        settings = cast(ShopifySettings, source.settings)
        state = {} if checkpoint is None else checkpoint.state
        after = int(str(state.get("after", 0)))
        found = await listed(settings, net)
        left = iter(sorted(number for number in found if number > after))
        while batch := tuple(islice(left, settings.batch_size)):
            targets = (
                Target(str(number), f"{settings.address}/products/{quote(found[number])}.json")
                for number in batch
            )
            yield Batch(tuple(targets), Checkpoint({"after": batch[-1]}))
        yield Batch((), COMPLETE)

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The product and its embed; the shop's own entry where the shop serves no embed."""
        product = unlocked(await net.get(target.url, role=PRODUCT, accept=ACCEPT))
        address = target.url.removesuffix(".json")
        shop = address.rpartition("/products/")[0]
        for role, url in ((EMBED, f"{address}.oembed"), (SHOP, f"{shop}/meta.json")):
            part = await _served(net, role, url)
            if part is not None:
                return Fetched((product, part))
        return Fetched((product,))

    def read(self, capture: Capture) -> Iterable[Record]:
        """A record for each variant; raises `NotARecord` where there is none."""
        return tuple(records(opened(capture), self.dispositions(capture)))

    def stated(self, capture: Capture) -> Iterable[Stated]:
        """Every labelled name of the parts; an option is called by the name that the shop gives it."""
        return stated(opened(capture).leaves())

    def disposition(self, name: str, config: Mapping[str, object]) -> Disposition | None:
        """As declared, extended by the source's own settings."""
        return disposition(name, config)

    def config(self, source: Source) -> Mapping[str, object]:
        """The market's hints, and how the source names things."""
        return {
            **super().config(source),
            **pinned(source.settings, "options", "fields", "exclusions"),
        }


async def _served(net: Net, role: str, url: str) -> Part | None:
    try:
        return unlocked(await net.get(url, role=role, accept=ACCEPT))
    except NetFailed as failed:
        if failed.status not in _ABSENT:
            raise
        return None
