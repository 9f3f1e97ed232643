"""An adapter for tests: its pages are JSON that says which records to read, or how to misbehave."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

from prw_sdk.adapter import (
    Adapter,
    Batch,
    Checkpoint,
    Disposition,
    Fetched,
    Net,
    NotARecord,
    Source,
    Stored,
    Target,
)
from prw_sdk.evidence import Capture, Claim, Locator, Origin, Record, Selector, SelectorType
from prw_sdk.hookspecs import hookimpl

POINTS = (EntryPoint("tiny", "tests.support.tiny_plugin", "prw.adapters"),)


class Tiny(Adapter):
    """Reads ``{"records": [{"id", "claims": {attribute: value}, "seller"}]}``."""

    name, version = "tiny", "1.0.0"
    surfaces: ClassVar[Mapping[str, Disposition]] = {"page": Stored("page")}
    fields: ClassVar[Mapping[str, Disposition]] = {
        "claims": Stored("core:title"),
        "seller": Stored("offer:seller"),
    }
    merchant_field = "seller"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Nothing is ever planned."""
        for batch in tuple[Batch]():
            yield batch

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """One page."""
        return Fetched((await net.get(target.url, role="page"),))

    def read(self, capture: Capture) -> Iterable[Record]:
        """The records that the page says, unless it says how to misbehave."""
        page = json.loads(capture.part("page").body)
        _misbehave(page.get("do"))
        return list(_records(page))

    def stated(self, capture: Capture) -> Iterable[str]:
        """Every name at the top of a record."""
        return ["claims", "seller"]


def _misbehave(how: str | None) -> None:
    if how == "hang":
        threading.Event().wait()
    if how == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ZeroDivisionError("the parser has a defect, \0 and \ud800")
    if how == "not_a_record":
        raise NotARecord("a page about something else")
    if how == "not_text":
        raise NotARecord("\0 and \ud800")


def _records(page: dict[str, Any]) -> Iterator[Record]:
    for number, record in enumerate(page.get("records", ())):
        at = f"/records/{number}"
        seller = record.get("seller")
        yield Record(
            record["id"],
            record.get("listing", record["id"]),
            None if seller is None else _claim("offer:seller", seller, f"{at}/seller", page),
            tuple(
                _claim(key, text, f"{at}/claims/{key}", page)
                for key, text in record["claims"].items()
            ),
        )


def _claim(attribute: str, text: str, pointer: str, page: dict[str, Any]) -> Claim:
    selector = Selector(SelectorType.JSON_POINTER, pointer)
    locator = Locator(page.get("role", "page"), selector)
    return Claim(attribute, text, locator, Origin(page.get("origin", "adapter")))


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The one adapter."""
    return [Tiny]
