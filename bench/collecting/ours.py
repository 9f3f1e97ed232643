"""Our side: the whole runner into a spool. ``python -m bench.collecting.ours ORIGIN PAGES AT_ONCE FOLDER``."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import ClassVar

from parsel import Selector as Document

from bench.collecting.pages import paths, product
from bench.collecting.result import tell
from prw_sdk.adapter import (
    Adapter,
    AdapterSettings,
    Batch,
    Checkpoint,
    Fetched,
    Net,
    Source,
    Stored,
    Target,
)
from prw_sdk.collect import RunLimits, SourceJob, collect
from prw_sdk.evidence import Capture, Claim, Locator, Record, Selector, SelectorType
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import NetConfig
from prw_sdk.fetch.polite import Politeness, user_agent
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome

_BATCH = 200
_WHERE = 'script[type="application/ld+json"]'
_FIELDS = {
    "name": ("core:title", "/name"),
    "sku": ("core:sku", "/sku"),
    "price": ("offer:price", "/offers/price"),
    "currency": ("offer:currency", "/offers/priceCurrency"),
    "seller": ("offer:seller", "/offers/seller/name"),
}


class ShopSettings(AdapterSettings):
    """Where the shop is, and how many pages it has."""

    origin: str
    pages: int


class Shop(Adapter):
    """The site's products, as an author writes it."""

    name, version = "bench-shop", "1.0.0"
    settings = ShopSettings
    surfaces: ClassVar = {"page": Stored("page")}
    fields: ClassVar = {name: Stored(target) for name, (target, _) in _FIELDS.items()}
    merchant_field = "seller"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Batches with checkpoints."""
        settings = source.settings
        assert isinstance(settings, ShopSettings)  # noqa: S101 - validated at load
        every = paths(settings.pages)
        for at in range(0, len(every), _BATCH):
            some = every[at : at + _BATCH]
            targets = tuple(Target(path[3:], settings.origin + path) for path in some)
            yield Batch(targets, Checkpoint({"done": at + len(some)}))

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """One page."""
        return Fetched((await net.get(target.url, role="page"),))

    def read(self, capture: Capture) -> Iterable[Record]:
        """One record with its claims."""
        found = product(Document(text=capture.part("page").text()))
        claims = {name: _claim(target, found[name], at) for name, (target, at) in _FIELDS.items()}
        seller = claims.pop("seller")
        yield Record("product", found["sku"], seller, tuple(claims.values()))

    def stated(self, capture: Capture) -> Iterable[str]:
        """Its fields."""
        return list(_FIELDS)


def _claim(target: str, value: str, pointer: str) -> Claim:
    inner = Selector(SelectorType.JSON_POINTER, pointer)
    return Claim(target, value, Locator("page", Selector(SelectorType.CSS, _WHERE, None, inner)))


def main() -> None:
    """One run, and what it came to."""
    origin, pages, at_once, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    adapter = Shop()
    source = Source("src_bench", ShopSettings(origin=origin, pages=pages))
    rules = AddressRules(frozenset({origin.removeprefix("http://")}))
    net = NetConfig(user_agent("bench@example.org"), rules)
    limits = RunLimits(concurrency=at_once, manners=Politeness(1_000_000, at_once))
    spool = Spool(Path(folder))
    start = time.monotonic()
    (report,) = asyncio.run(collect([SourceJob("local", source, adapter, net)], spool, limits))
    seconds = time.monotonic() - start
    spool.close()
    if report.failure is not None or report.outcomes != {Outcome.STORED: pages}:
        raise SystemExit(f"the run did not keep every page: {report}")
    tell(pages, seconds)


if __name__ == "__main__":
    main()
