"""The small shop's adapter, broken in one way at a time."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from pydantic import SecretStr

from prw_sdk.adapter import (
    Batch,
    Checkpoint,
    Excluded,
    Fetched,
    Net,
    NetFailed,
    Source,
    Stated,
    Stored,
    Target,
)
from prw_sdk.evidence import Capture, Locator, Origin, Record, Selector, SelectorType
from tests.sdk.small_shop import PAGES, Small, SmallSettings


def changed(record: Record, attribute: str, **other: Any) -> Record:
    """The record with a claim of that attribute changed."""
    claims = tuple(replace(c, **other) if c.attribute == attribute else c for c in record.claims)
    return replace(record, claims=claims)


class Undeclared(Small):
    fields: ClassVar = {**Small.fields, "sku": Excluded("not read today")}


class SurfaceWithoutFixture(Small):
    surfaces: ClassVar = {**Small.surfaces, "reviews": Stored("reviews")}


class PartWithoutSurface(Small):
    surfaces: ClassVar = {"article-page": Stored("page")}


class UndeclaredName(Small):
    def stated(self, capture: Capture) -> Iterable[str | Stated]:
        """One name more than is declared."""
        return [*super().stated(capture), "weight"]


class NeverStated(Small):
    fields: ClassVar = {**Small.fields, "gtin": Stored("core:gtin")}


class NeverRead(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """The title is left out."""
        for record in super().read(capture):
            kept = tuple(one for one in record.claims if one.attribute != "core:title")
            yield replace(record, claims=kept)


class ClaimsWhatIsExcluded(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """The colour is claimed."""
        for record in super().read(capture):
            colours = [leaf for leaf in self.leaves(capture) if leaf.name == "color"]
            more = tuple(leaf.claim("core:color") for leaf in colours)
            yield replace(record, claims=(*record.claims, *more))


class OtherMerchantField(Small):
    fields: ClassVar = {**Small.fields, "offers.seller*": Stored("offer:seller")}
    merchant_field = "offers.seller"


class LiteralMerchant(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """Always the same merchant."""
        for record in super().read(capture):
            assert record.merchant is not None
            yield replace(record, merchant=replace(record.merchant, value_as_stated="Small Parts"))


class LegacyWithoutFixture(Small):
    legacy: ClassVar = ("0.9.0",)


class WrongLocator(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """A number is said to stand anywhere."""
        where = Locator("page", Selector(SelectorType.CSS, "body"))
        return [changed(record, "core:sku", locator=where) for record in super().read(capture)]


class ModelClaims(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """A claim of a model's."""
        return [changed(one, "core:sku", origin=Origin.MODEL) for one in super().read(capture)]


class SameRecordTwice(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """Each record twice under one id."""
        for record in super().read(capture):
            yield record
            yield replace(record, listing_key=f"{record.listing_key}#again")


class PriceInTheKey(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """A key that changes with the price."""
        for record in super().read(capture):
            price = next(c.value_as_stated for c in record.claims if c.attribute == "offer:price")
            yield replace(record, listing_key=f"{record.listing_key}#{price}")


class KeepsState(Small):
    def __init__(self) -> None:
        self.reads = 0

    def read(self, capture: Capture) -> Iterable[Record]:
        """Another id with every read."""
        self.reads += 1
        return [replace(one, record_id=f"{self.reads}") for one in super().read(capture)]


class StatesInAnyOrder(Small):
    calls = 0

    def stated(self, capture: Capture) -> Iterable[str | Stated]:
        """Every other time backwards."""
        StatesInAnyOrder.calls += 1
        names = list(super().stated(capture))
        return names[::-1] if self.calls % 2 else names


class HashOfTheProcess(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """An id of this process alone."""
        return [replace(one, record_id=f"{hash('one')}") for one in super().read(capture)]


class OpensFiles(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """It looks into a file, and hides that."""
        try:
            Path("/etc/hosts").read_text("utf-8")
        except Exception:  # noqa: BLE001  # it hides what it does
            return super().read(capture)
        return super().read(capture)


class LooksOnce(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """It looks into a file, and remembers what it saw."""
        _remembered()
        return super().read(capture)


@lru_cache
def _remembered() -> str:
    return Path("/etc/hosts").read_text("utf-8")


class AsksTheClock(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """Nothing is read before 2001."""
        return super().read(capture) if datetime.now().year > 2000 else []  # noqa: DTZ005  # it is broken


class ThrowsDice(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """Chance has a say."""
        return super().read(capture) if random.random() < 2 else []


class AsksTheSource(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """The source's id has a say."""
        return [replace(one, record_id=capture.source_id) for one in super().read(capture)]


class ChangesTheConfig(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """It notes something where it should not."""
        assert isinstance(capture.config, dict)
        capture.config["seen"] = True
        return super().read(capture)


class NoEnd(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """A page without an end is too much for it."""
        body = capture.parts[0].body if capture.parts else b""
        if any(one.startswith(body) and len(one) > len(body) > 20 for one in PAGES.values()):
            raise IndexError("it goes on")
        return super().read(capture)


class NoBytes(Small):
    def stated(self, capture: Capture) -> Iterable[str | Stated]:
        """A page without bytes is too much for it."""
        if capture.parts and not capture.parts[0].body:
            raise ZeroDivisionError
        return super().stated(capture)


class NoStock(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """A capture without stock is too much for it."""
        capture.part("stock")
        return super().read(capture)


class OwnCharset(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """A charset that is none is too much for it."""
        for part in capture.parts:
            part.body.decode(part.charset_used or "utf-8", errors="replace")
        return super().read(capture)


class StrictText(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """Bytes that are no text are too much for it."""
        for part in capture.parts:
            part.body.decode("utf-8")
        return super().read(capture)


class NoDepth(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """Depth is too much for it."""
        for part in capture.parts:
            try:
                json.loads(part.text())
            except ValueError:
                continue
        return super().read(capture)


class ReadsAbsences(Small):
    def read(self, capture: Capture) -> Iterable[Record]:
        """What is gone is read all the same."""
        return super().read(replace(capture, presence=type(capture.presence)("present")))


class PlansLess(Small):
    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """One article is left out."""
        async for batch in super().plan(source, checkpoint, net):
            if batch.targets[0].native_id != "frame":
                yield batch


class PlansNoIds(Small):
    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Addresses that are none."""
        async for batch in super().plan(source, checkpoint, net):
            yield replace(batch, targets=tuple(replace(t, url=t.native_id) for t in batch.targets))


class PlansAnyhow(Small):
    calls = 0

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Every other time without checkpoints."""
        PlansAnyhow.calls += 1
        async for batch in super().plan(source, checkpoint, net):
            yield replace(batch, then=None if self.calls % 2 else batch.then)


class PassesOver(Small):
    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """A checkpoint that is one ahead."""
        async for batch in super().plan(source, checkpoint, net):
            assert batch.then is not None
            done = int(str(batch.then.state["done"]))
            yield replace(batch, then=Checkpoint({"done": min(done + 1, 2)}))


class SecretiveSettings(SmallSettings):
    """With something that nobody else should know."""

    key: SecretStr = SecretStr("k-123456")


class TellsSecrets(Small):
    settings = SecretiveSettings

    def config(self, source: Source) -> Mapping[str, object]:
        """The key is pinned."""
        assert isinstance(source.settings, SecretiveSettings)
        return {**super().config(source), "access": source.settings.key.get_secret_value()}


class FetchesLess(Small):
    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The page alone."""
        return Fetched((await net.get(target.url, role="page"),))


class FetchesOtherThings(Small):
    calls = 0

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """Something else each time."""
        FetchesOtherThings.calls += 1
        first, *others = (await super().fetch(target, net)).parts
        body = first.body + b"<!-- %d -->" % self.calls
        return Fetched((replace(first, body=body, sha256=sha256(body).hexdigest()), *others))


class HidesFailures(Small):
    async def fetch(self, target: Target, net: Net) -> Fetched:
        """Another page where one fails."""
        try:
            return await super().fetch(target, net)
        except NetFailed:
            return await super().fetch(
                replace(target, url=f"{target.url.rpartition('/')[0]}/about"), net
            )
