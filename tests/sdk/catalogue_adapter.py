"""A small adapter over a plain-text list of pages, for tests of the runner."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from typing import ClassVar

from prw_sdk.adapter import (
    Adapter,
    AdapterSettings,
    Batch,
    Checkpoint,
    Fetched,
    Net,
    NotARecord,
    Source,
    Stored,
    Target,
)
from prw_sdk.evidence import Capture, Claim, Locator, Record, Selector, SelectorType

_TITLE = re.compile(r"<title>(.*?)</title>")


class ListSettings(AdapterSettings):
    """Where the list is, and how many of its lines make a batch."""

    index: str
    batch: int = 2


class ListAdapter(Adapter):
    """Every line of the index is a page; a page with a title is a record."""

    name, version = "list", "1.0.0"
    settings = ListSettings
    surfaces: ClassVar = {"page": Stored("page")}
    fields: ClassVar = {"title": Stored("core:title"), "seller": Stored("offer:seller")}
    merchant_field = "seller"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Batches of lines; the checkpoint counts the lines that are done, and wraps at the end."""
        assert isinstance(source.settings, ListSettings)
        index = await net.get(source.settings.index, role="index")
        lines = index.text().split()
        done = int(str(checkpoint.state["done"])) if checkpoint else 0
        start = 0 if done >= len(lines) else done
        for at in range(start, len(lines), source.settings.batch):
            some = lines[at : at + source.settings.batch]
            targets = tuple(Target(line.rpartition("/")[2], line) for line in some)
            yield Batch(targets, Checkpoint({"done": at + len(some)}))

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """One page."""
        if target.native_id == "defect":
            raise KeyError("a defect of the adapter")
        return Fetched((await net.get(target.url, role="page"),))

    def read(self, capture: Capture) -> Iterable[Record]:
        """Its title."""
        found = _TITLE.search(capture.part("page").text())
        if found is None:
            raise NotARecord("no title")
        if found[1] == "unreadable":
            raise ValueError("a defect of the reader")
        where = Locator("page", Selector(SelectorType.CSS, "title"))
        claim = Claim("core:title", found[1], where)
        return [Record("page", capture.native_record_id, None, (claim,))]

    def stated(self, capture: Capture) -> Iterable[str]:
        """The title."""
        return ["title"]
