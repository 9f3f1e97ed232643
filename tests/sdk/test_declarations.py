"""Declarations of adapters: what is refused, and that the message says what to write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from decimal import Decimal
from typing import Any

import pytest

from prw_sdk.adapter import (
    BACKLOG_BASELINE,
    Adapter,
    Backlog,
    Batch,
    Bound,
    Checkpoint,
    Disposition,
    Excluded,
    Fetched,
    Measure,
    Net,
    Source,
    Stored,
    Target,
    covers,
    declaration_faults,
    matching,
)
from prw_sdk.evidence import Capture, Record
from prw_sdk.plugins import load

A_FLOAT: Any = 0.5


class Sound(Adapter):
    """An adapter without a fault."""

    name = "sound"
    version = "1.0.0"
    surfaces = {"page": Stored("page"), "print-view": Excluded("a rendering of the page")}  # noqa: RUF012  # as authors write it
    fields = {  # noqa: RUF012  # as authors write it
        "Seller": Stored("offer:seller"),
        "MPN": Stored("core:mpn"),
        "review.*": Excluded("what buyers say"),
    }
    merchant_field = "Seller"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Plan nothing."""
        yield Batch(())

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """Fetch nothing."""
        return Fetched(())

    def read(self, capture: Capture) -> Iterable[Record]:
        """Read nothing."""
        return ()

    def stated(self, capture: Capture) -> Iterable[str]:
        """State nothing."""
        return ()


class WithoutDeclarations(Adapter):
    """An adapter whose author forgot everything but the methods."""

    plan = Sound.plan
    fetch = Sound.fetch
    read = Sound.read
    stated = Sound.stated


def faults(**declared: Any) -> tuple[str, ...]:
    """The faults of the sound adapter with something else declared."""
    return declaration_faults(type("Changed", (Sound,), declared))


def test_a_sound_adapter_has_no_faults() -> None:
    """Total census and inventory, reasons, a seller's field."""
    assert declaration_faults(Sound) == ()


def test_an_adapter_without_declarations_is_told_all_that_is_missing() -> None:
    """Name, version, census, inventory and merchant, each with what to write."""
    said = "\n".join(declaration_faults(WithoutDeclarations))
    for missing in (
        'write name = "',
        'write version = "',
        "write surfaces = ",
        "write fields = ",
        "write merchant_field",
    ):
        assert missing in said


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"surfaces": {}}, "no surface census"),
        ({"fields": {}}, "no field inventory"),
        ({"surfaces": {"page": Stored("  ")}}, "surface 'page' is stored without a part"),
        ({"surfaces": {"page": Excluded(" ")}}, "surface 'page' has a blank reason"),
        ({"surfaces": {"page": "page"}}, "surface 'page' has no disposition"),
        ({"fields": {"Seller": Stored("seller")}}, "write the key of an attribute"),
        (
            {"fields": {"Seller": Stored("offer:seller"), "x": Excluded("")}},
            "field 'x' has a blank reason",
        ),
        ({"merchant_field": ""}, "no merchant_field"),
        ({"merchant_field": "Shop"}, "merchant_field 'Shop' is not declared as stored"),
        ({"merchant_field": "review.author"}, "is not declared as stored"),
        ({"name": "Lumen Web"}, "no usable name"),
        ({"version": "1"}, "no usable version"),
        ({"settings": dict}, "settings is no subclass"),
        ({"legacy": ["1.0.0"]}, "legacy is no tuple"),
        ({"legacy": ("old",)}, "legacy names 'old', which is no version"),
        ({"legacy": ("1.0.0",)}, "the version itself: name older ones alone"),
        ({"uses_browser": "yes"}, "write True where fetch or plan calls net.render"),
        ({"bounds": [Bound(Measure.RECORDS)]}, "bounds is no tuple"),
        ({"bounds": (10,)}, "bound 1 is 10: write Bound("),
        ({"bounds": (Bound(Measure.RECORDS),)}, "bound 1 bounds nothing"),
        ({"bounds": (Bound(Measure.RECORDS, A_FLOAT),)}, "limits that are no Decimals"),
        ({"bounds": (Bound(Measure.RECORDS, Decimal(-1)),)}, "a negative or endless limit"),
        ({"bounds": (Bound(Measure.RECORDS, Decimal("inf")),)}, "a negative or endless limit"),
        ({"bounds": (Bound(Measure.RECORDS, Decimal(2), Decimal(1)),)}, "above its maximum"),
        ({"bounds": (Bound(Measure.RECORDS, Decimal(2), None, "a:b"),)}, "leave attribute out"),
        ({"bounds": (Bound(Measure.SHARE, Decimal(1)),)}, "is a share of nothing"),
        (
            {"bounds": (Bound(Measure.SHARE, Decimal(2), None, "offer:price"),)},
            "has a share above 1: write a fraction",
        ),
    ],
)
def test_a_fault_is_named_with_what_to_write(declared: dict[str, Any], said: str) -> None:
    """Each refusal says where the fault is."""
    assert any(said in one for one in faults(**declared))


@pytest.mark.parametrize(
    "reason",
    [
        "not read today",
        "Not fetched today.",
        "not yet",
        "nobody needs it yet",
        "left out for now",
        "TODO",
        "not implemented",
        "not stored",
        "(not read)",
    ],
)
def test_putting_off_is_no_reason(reason: str) -> None:
    """Replay rule 14: "not read today" is not a reason."""
    assert any("only puts it off" in one for one in faults(surfaces={"page": Excluded(reason)}))


@pytest.mark.parametrize(
    "reason",
    [
        "a duplicate of a stored field",
        "the price of yesterday, which an earlier capture holds",
        "the buyer's name: data minimisation",
        "not a fact about the article",
    ],
)
def test_a_reason_that_says_what_it_is_holds(reason: str) -> None:
    """A duplicate, something derived elsewhere, data minimisation."""
    assert faults(surfaces={"page": Stored("page"), "other": Excluded(reason)}) == ()


AT_FIRST: frozenset[str] = frozenset()
"""The baseline when it was made; an entry that is taken out there is taken out here."""


def test_backlog_is_for_adapters_on_the_baseline_alone() -> None:
    """A new adapter stores or excludes."""
    kept = {"page": Stored("page"), "stock": Backlog("the availability answer")}
    assert any("only an adapter on the committed baseline" in one for one in faults(surfaces=kept))


def test_the_baseline_of_the_backlog_only_shrinks() -> None:
    """No entry is ever added, and one whose field was stored meanwhile is gone from it."""
    assert BACKLOG_BASELINE <= AT_FIRST
    used = {
        f"{adapter.name}:{name}"
        for adapter in load().adapters.values()
        for table in (adapter.surfaces, adapter.fields)
        for name, how in table.items()
        if isinstance(how, Backlog)
    }
    assert used == BACKLOG_BASELINE


def test_a_pattern_stands_for_anything_and_a_name_for_itself() -> None:
    """Brackets and question marks are letters like others."""
    assert covers("size[cm]", "size[cm]")
    assert not covers("size[cm]", "sizec")
    assert covers("[a]?.*", "[a]?.b.c")
    assert not covers("[a]?.*", "ab.c")


def test_an_adapter_that_reads_asynchronously_is_refused() -> None:
    """`read` runs without a loop, over kept bytes."""

    async def read(self: Adapter, capture: Capture) -> Iterable[Record]:
        return ()

    assert any("read is async" in one for one in faults(read=read))


def test_the_more_exact_declaration_wins() -> None:
    """The exact name before patterns, the longest pattern before shorter ones."""
    fields: dict[str, Disposition] = {
        "a.*": Excluded("wide"),
        "a.b.*": Excluded("narrow"),
        "a.b.c": Stored("core:c"),
    }
    assert matching(fields, "a.b.c") == Stored("core:c")
    assert matching(fields, "a.b.d") == Excluded("narrow")
    assert matching(fields, "a.x.y") == Excluded("wide")
    assert matching(fields, "b") is None
    assert Sound().disposition("review.author", {}) == Excluded("what buyers say")
