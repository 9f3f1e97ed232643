"""The adapter: a shop whose pages have to be opened in a browser, with its policies beside each product."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import cast

from prw_plugin_rendered_shop import walk
from prw_plugin_rendered_shop.inventory import DATA, FIELDS, PAGE, SURFACES
from prw_plugin_rendered_shop.page import leaves, parse, select
from prw_plugin_rendered_shop.settings import (
    Opening,
    RenderedShopSettings,
    opening,
    pinned,
    reading,
)
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
from prw_sdk.evidence import Capture, Part, Record
from prw_sdk.take import stated, take

_GONE = (404, 410)


class RenderedShop(Adapter):
    """One record a product: what its page shows, and the shop's policies as parts of each capture."""

    name = "rendered-shop"
    version = "0.1.0"
    settings = RenderedShopSettings
    surfaces = SURFACES
    fields = FIELDS
    merchant_field = "seller"
    uses_browser = True

    def __init__(self) -> None:
        self._opening = Opening()
        self._policies: dict[str, Part | None] = {}
        self._asking = asyncio.Lock()

    def plan(self, source: Source, checkpoint: Checkpoint | None, net: Net) -> AsyncIterator[Batch]:
        """Every product of the shop's lists, and those named in the settings."""
        self._policies.clear()
        return walk.batches(self._told(source), checkpoint, net)

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The page as rendered, as served and as seen, its data, and the policies that it links to."""
        told = self._opening
        data = {} if told.data is None else {DATA: told.data}
        parts = await net.render(target.url, role=PAGE, responses=data, wait_for=told.wait_for)
        return Fetched((*parts, *[one async for one in self._linked(parts, net)]))

    async def _linked(self, parts: tuple[Part, ...], net: Net) -> AsyncIterator[Part]:
        page = next((part for part in parts if part.role == PAGE), None)
        tree = None if page is None else parse(page)
        for name, css in self._opening.policies.items():
            links = [] if tree is None else select(tree, css)
            url = next(filter(None, (walk.led_to(page, link) for link in links if page)), None)
            part = None if url is None else await self._policy(name, url, net)
            if part is not None:
                yield part

    async def _policy(self, name: str, url: str, net: Net) -> Part | None:
        """A policy page, asked for once a run; None where the link leads nowhere."""
        async with self._asking:
            if url not in self._policies:
                try:
                    part = await net.get(url, role=f"policy.{name}", accept="text/html")
                    self._policies[url] = part
                except NetFailed as failed:
                    if failed.status not in _GONE:
                        raise
                    self._policies[url] = None
            found = self._policies[url]
        # one page may hold two policies
        return found if found is None or found.role == f"policy.{name}" else None

    def read(self, capture: Capture) -> Iterable[Record]:
        """The product; raises `NotARecord` for a page that shows none."""
        taken = take(leaves(capture), self.dispositions(capture))
        return (taken.record("product", capture.native_record_id),)

    def stated(self, capture: Capture) -> Iterable[Stated]:
        """What the settings look for and the page shows, every labelled row, the data, the policies."""
        return stated(leaves(capture))

    def disposition(self, name: str, config: Mapping[str, object]) -> Disposition | None:
        """As the source's own settings say, else as declared."""
        return reading(config).disposition(name) or super().disposition(name, config)

    def config(self, source: Source) -> Mapping[str, object]:
        """The market's hints, and where the page shows what."""
        return {**super().config(source), **pinned(self._told(source))}

    def _told(self, source: Source) -> RenderedShopSettings:
        """The source's settings; what opens a page is remembered, since `fetch` is given a target alone."""
        settings = cast(RenderedShopSettings, source.settings)
        self._opening = opening(settings)
        return settings
