"""Reading: a function of what was kept, and of nothing else."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime

from prw_sdk.evidence import Claim, Egress, Origin, Record, Region
from prw_sdk.locate import leads_back
from prw_sdk.testing import fixtures
from prw_sdk.testing.bench import Bench, fail, fail_with
from prw_sdk.testing.change import follows, renamed_in
from prw_sdk.testing.elsewhere import elsewhere
from prw_sdk.testing.fixtures import Fixture
from prw_sdk.testing.guard import without_chance, without_io
from prw_sdk.testing.reading import claims, outcome

SLOWEST = 2.0
"""Seconds that reading one fixture may take."""

OTHERS = 6
"""Fixtures that are read in between, to see whether anything is left of them."""

_KEY = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_.]*")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def test_every_locator_leads_back(bench: Bench, case: Fixture) -> None:
    """A claim's locator finds its value in the kept bytes, by code that shares nothing with the reader."""
    lost = [
        f"{_told(claim)} is not at {claim.locator.part_role}: {claim.locator.selector.as_json()}"
        for record in bench.records(case)
        for claim in claims(record)
        if not leads_back(claim, case.capture)
    ]
    fail_with(lost, "let the selector lead to the very text that the claim states")


def test_values_are_as_stated(bench: Bench, case: Fixture) -> None:
    """Texts as the source wrote them, under keys of attributes, by the adapter itself."""
    wrong = [
        f"{_told(claim)} {fault}"
        for record in bench.records(case)
        for claim in claims(record)
        if (fault := _fault(claim))
    ]
    fail_with(wrong, "claim exactly what stands there; what it means is for the resolver to say")


def _fault(claim: Claim) -> str | None:
    if not isinstance(claim.value_as_stated, str):
        return "is no text"
    if not claim.value_as_stated.strip():
        return "says nothing"
    if _NO_TEXT.search(claim.value_as_stated):
        return "holds half a character or NUL, which no database keeps"
    if not _KEY.fullmatch(claim.attribute):
        return "is under no attribute's key"
    return None if claim.origin is Origin.ADAPTER else "is not of the adapter's own making"


def _told(claim: Claim) -> str:
    return f"{claim.attribute} {str(claim.value_as_stated)[:80]!r}"


def test_record_ids_and_listing_keys_are_unique(bench: Bench, case: Fixture) -> None:
    """No two records of a capture are one."""
    records = bench.records(case)
    for what in ("record_id", "listing_key"):
        known = [getattr(record, what) for record in records]
        twice = sorted({one for one in known if known.count(one) > 1})
        blank = ["a blank one"] if any(not one.strip() for one in known) else []
        fail_with(
            [*(f"{what} {one!r} twice" for one in twice), *blank], f"make {what} of what differs"
        )


def test_listing_keys_are_stable(bench: Bench, case: Fixture) -> None:
    """A listing keeps its key when its price changes."""
    before = bench.records(case)
    for changed in renamed_in(bench, case, _is_price):
        if _but_prices(changed.records) == _but_prices(before) and _keys(changed.records) != _keys(
            before
        ):
            fail(
                f"with the price {changed.text!r} the keys {_keys(before)} became {_keys(changed.records)}",
                "→ make listing_key of what stays: the target's id, a seller, a variant's number",
            )


def _is_price(claim: Claim) -> bool:
    return claim.attribute == "offer:price"


def _keys(records: tuple[Record, ...]) -> list[str]:
    return [record.listing_key for record in records]


def _but_prices(records: tuple[Record, ...]) -> list[list[tuple[str, str]]]:
    return [
        [(one.attribute, one.value_as_stated) for one in claims(record) if not _is_price(one)]
        for record in records
    ]


def test_merchant_is_no_literal(bench: Bench) -> None:
    """Rule 15: where the text of the merchant changes in the page, the record's merchant follows."""
    cases = [case for case in bench.with_records() if any(r.merchant for r in bench.records(case))]
    fail_with(
        (
            f"{case.case}: the merchant stays the same whatever the page says"
            for case in cases
            if not follows(bench, case)
        ),
        "read the merchant from the record's own field; a publisher is not the merchant",
    )


def test_reading_twice_gives_the_same(bench: Bench, case: Fixture) -> None:
    """Once more by the same instance after others were read, and once by a new one."""
    first = bench.outcome(case.capture)
    for other in bench.cases[:OTHERS]:
        outcome(bench.adapter, other.capture)
    again = outcome(bench.adapter, case.capture)
    if not first == again == bench.outcome(case.capture):
        fail(
            "reading again gave something else", "→ keep no state between reads, sort what is a set"
        )


def test_names_are_stated_in_one_order(bench: Bench, case: Fixture) -> None:
    """Stating twice gives the same names in the same order."""
    capture = case.capture
    if bench.account(case).kinds and [*bench.adapter.stated(capture)] != [
        *bench.fresh().stated(capture)
    ]:
        fail("stated gave other names, or another order", "→ sort what is a set")


def test_reading_in_another_process_gives_the_same(bench: Bench) -> None:
    """Whatever the process's hash seed, time zone, locale and working folder."""
    there = elsewhere(bench)
    fail_with(
        (
            f"{case.case} is read differently there"
            for case in bench.cases
            if there.read[case.case] != bench.outcome(case.capture)
        ),
        "let read depend on the capture alone: sort what is a set, ask no environment",
    )


def test_the_first_read_of_a_process_does_no_io(bench: Bench) -> None:
    """Nor is anything fetched once and kept for later reads."""
    fail_with(
        elsewhere(bench).reached,
        "take it from the capture, or load it where the module is loaded",
    )


def test_reading_does_no_io(bench: Bench, case: Fixture) -> None:
    """No network, no files, no processes, no waiting."""
    adapter = bench.fresh()
    with without_io(bench.subject.adapter) as reached:
        try:
            outcome(adapter, case.capture)
        except Exception:
            if not reached:
                raise
    fail_with(reached, "take it from the capture; what read needs of the settings is in config")


def test_reading_uses_no_clock_and_no_chance(bench: Bench, case: Fixture) -> None:
    """What is read today is read in ten years as well."""
    adapter = bench.fresh()
    with without_chance(bench.subject.adapter) as used:
        outcome(adapter, case.capture)
    fail_with(sorted(set(used)), "take the time from capture.captured_at, and nothing from chance")


def test_reading_asks_nothing_of_where_and_when(bench: Bench, case: Fixture) -> None:
    """The moment, the collector's region and its egress are recorded, and never used as a market."""
    then = datetime(2031, 7, 8, 9, 10, 11, 121314, tzinfo=UTC)
    parts = tuple(replace(part, fetched_at=then, headers=()) for part in case.capture.parts)
    elsewhere = replace(
        case.capture,
        captured_at=then,
        parts=parts,
        source_id="src_other",
        execution_region=Region("NZ", "elsewhere"),
        egress=Egress("NZ", verified=True),
    )
    if bench.outcome(elsewhere) != bench.outcome(case.capture):
        fail(
            "captured at another moment, from another region, by another source it is read differently",
            "→ read the parts and config alone; a market's hints are in config",
        )


def test_reading_leaves_the_capture_alone(bench: Bench, case: Fixture) -> None:
    """Others read the same values after it."""
    capture = fixtures.read(case.folder, bench.adapter).capture
    before = json.dumps(dict(capture.config), sort_keys=True)
    outcome(bench.fresh(), capture)
    if json.dumps(dict(capture.config), sort_keys=True) != before:
        fail("read changed the capture's config", "→ copy what is changed")


def test_reading_is_quick(bench: Bench, case: Fixture) -> None:
    """Years of captures are read again after a parser was mended."""
    adapter = bench.fresh()
    started = time.perf_counter()
    outcome(adapter, case.capture)
    took = time.perf_counter() - started
    if took > SLOWEST:
        fail(f"reading took {took:.1f} s, and {SLOWEST} s are allowed", "→ parse each part once")
