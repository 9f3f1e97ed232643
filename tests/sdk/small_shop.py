"""A small sound adapter, and its fixtures: what the conformance suite finds nothing against."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from prw_sdk.adapter import (
    Adapter,
    AdapterSettings,
    Batch,
    Checkpoint,
    Excluded,
    Fetched,
    Net,
    NotARecord,
    Source,
    Stated,
    Stored,
    Target,
)
from prw_sdk.evidence import Capture, Presence, Record
from prw_sdk.take import Leaf, json_node, jsonld, stated, take
from prw_sdk.testing import fixtures

ORIGIN = "https://small.example"


class SmallSettings(AdapterSettings):
    """Where the list of articles is."""

    index: str = f"{ORIGIN}/articles.txt"


class Small(Adapter):
    """A shop with a page and a stock answer for each article."""

    name, version = "small", "1.0.0"
    settings = SmallSettings
    surfaces: ClassVar = {
        "article-page": Stored("page"),
        "stock-answer": Stored("stock"),
        "print-view": Excluded("a rendering of the article page"),
    }
    fields: ClassVar = {
        "sku": Stored("core:sku"),
        "name": Stored("core:title"),
        "color": Excluded("a trait that no class of the vocabulary asks for"),
        "offers.price": Stored("offer:price"),
        "offers.seller.name": Stored("offer:seller"),
        "stock.available": Stored("offer:availability"),
    }
    merchant_field = "offers.seller.name"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """The lines of the list, each a batch."""
        assert isinstance(source.settings, SmallSettings)
        lines = (await net.get(source.settings.index, role="list")).text().split()
        done = int(str(checkpoint.state["done"])) if checkpoint else 0
        for at in range(0 if done >= len(lines) else done, len(lines)):
            target = Target(lines[at], f"{ORIGIN}/{lines[at]}")
            yield Batch((target,), Checkpoint({"done": at + 1}))

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The page and the stock."""
        page = await net.get(target.url, role="page")
        return Fetched((page, await net.get(f"{target.url}/stock", role="stock")))

    def read(self, capture: Capture) -> Iterable[Record]:
        """One record."""
        leaves = self.leaves(capture)
        return [take(leaves, self.dispositions(capture)).record("one", capture.native_record_id)]

    def stated(self, capture: Capture) -> Iterable[str | Stated]:
        """What both parts state."""
        return stated(self.leaves(capture))

    def leaves(self, capture: Capture) -> tuple[Leaf, ...]:
        """All leaves of the article and of its stock; raises `NotARecord` where there is no article."""
        if capture.presence is Presence.ABSENT:
            raise NotARecord("the source says that it is gone")
        roles = {part.role: part for part in capture.parts}
        products = jsonld(roles["page"], "Product") if "page" in roles else ()
        if not products:
            raise NotARecord("no article")
        try:
            stock = json_node(roles["stock"]).leaves if "stock" in roles else ()
        except NotARecord:
            stock = ()
        return (*products[0].leaves, *(replace(one, name=f"stock.{one.name}") for one in stock))


def page(product: Mapping[str, object] | None) -> bytes:
    """A page with that article."""
    script = f'<script type="application/ld+json">{json.dumps(product)}</script>' if product else ""
    return f"<html><head>{script}</head><body>Small shop</body></html>\n".encode()


def article(sku: str, name: str, price: str, **more: object) -> dict[str, Any]:
    """An article as the shop marks it up."""
    seller = {"@type": "Organization", "name": "Small Parts"}
    offers = {"@type": "Offer", "price": price, "seller": seller}
    return {"@type": "Product", "sku": sku, "name": name, "offers": offers, **more}


PAGES: Mapping[str, bytes] = {
    "wheel": page(article("W-1", "Wheel", "12.90", color="red")),
    "frame": page(article("F-1", "Frame", "230.00")),
    "about": page(None),
}


def write_fixtures(folder: Path, pages: Mapping[str, bytes] = PAGES, **described: object) -> None:
    """The fixtures of the shop, and its recorded plan; `described` goes into each capture."""
    for case, body in pages.items():
        where = folder / case
        where.mkdir(parents=True)
        (where / "page.html").write_bytes(body)
        (where / "stock.json").write_bytes(b'{"available": true}')
        url = f"{ORIGIN}/{case}"
        parts = [
            {"role": "page", "file": "page.html", "url_asked": url, "media_type": "text/html"},
            {
                "role": "stock",
                "file": "stock.json",
                "url_asked": f"{url}/stock",
                "media_type": "application/json",
            },
        ]
        capture = {"native_record_id": case, "parts": parts, **described}
        (where / fixtures.CAPTURE).write_text(json.dumps(capture), "utf-8")
    write_plan(folder, sorted(pages))


def write_plan(folder: Path, names: Iterable[str], listed: Iterable[str] | None = None) -> None:
    """A recorded plan whose list names these, and should lead to these targets."""
    names = list(names)
    (folder / "list.txt").write_text("\n".join(names), "utf-8")
    plan = {
        "pages": [
            {"url": f"{ORIGIN}/articles.txt", "file": "list.txt", "media_type": "text/plain"}
        ],
        "targets": [{"native_id": name, "url": f"{ORIGIN}/{name}"} for name in (listed or names)],
    }
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
