"""The recorded pages: what is read of each, where it stands, and that everything stated is accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import extruct
import pytest

from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.adapter import Excluded, NotARecord, Stored
from prw_sdk.evidence import Capture
from prw_sdk.locate import fold, leads_back
from tests.plugins.reading import capture, claims, plain

FOLDER = Path(__file__).parent / "fixtures" / "schemaorg"
NAMES = sorted(path.stem for path in FOLDER.glob("*.html"))
ADAPTER = SchemaOrg()


def recorded(name: str) -> Capture:
    """The capture of a recorded page."""
    return capture((FOLDER / f"{name}.html").read_bytes(), f"https://shop.example/p/{name}")


def outcome(taken: Capture) -> dict[str, Any]:
    """What `read` and `stated` say of a capture."""
    try:
        found: dict[str, Any] = {"records": [plain(record) for record in ADAPTER.read(taken)]}
    except NotARecord as no:
        found = {"not_a_record": str(no)}
    return found | {"stated": list(ADAPTER.stated(taken))}


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_page_is_read_as_it_was_looked_at(name: str) -> None:
    """Each fixture gives exactly the records, or the reason, that stand beside it."""
    expected = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    assert outcome(recorded(name)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_locator_leads_back_to_the_stated_value(name: str) -> None:
    """A claim's locator finds its value in the kept bytes, by code that shares nothing with the reader."""
    taken = recorded(name)
    records = () if "not_a_record" in outcome(taken) else tuple(ADAPTER.read(taken))
    lost = [claim for record in records for claim in claims(record) if not leads_back(claim, taken)]
    assert lost == []


@pytest.mark.parametrize("name", NAMES)
def test_every_stated_name_is_stored_or_excluded(name: str) -> None:
    """Rule 14: a name on the page that no declaration covers fails with its name."""
    taken = recorded(name)
    names = ADAPTER.stated(taken)
    assert [one for one in names if ADAPTER.disposition(one, taken.config) is None] == []


def test_every_stored_target_comes_out_of_some_recorded_page() -> None:
    """Rule 14, the other direction: no attribute is declared as stored that no record carries."""
    declared = {one.target for one in ADAPTER.fields.values() if isinstance(one, Stored)}
    read = {
        claim.attribute
        for name in NAMES
        if "records" in outcome(recorded(name))
        for record in ADAPTER.read(recorded(name))
        for claim in claims(record)
    }
    assert declared - read == set()


@pytest.mark.parametrize("name", NAMES)
def test_an_independent_reader_finds_the_same_values(name: str) -> None:
    """What is claimed from microdata, extruct's microdata reader finds on the page too."""
    taken = recorded(name)
    if "not_a_record" in outcome(taken):
        return
    markup = taken.part("page").text()
    syntaxes = ["microdata"]
    known = set(_texts(extruct.extract(markup, base_url="", syntaxes=syntaxes)))
    for record in ADAPTER.read(taken):
        for claim in claims(record):
            if (
                "@" not in claim.locator.selector.value
                and "meta" not in claim.locator.selector.value
            ):
                assert fold(claim.value_as_stated) in known


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [fold(str(value))]


def test_reading_twice_gives_the_same() -> None:
    """`read` is a function of the capture alone."""
    for name in NAMES:
        assert outcome(recorded(name)) == outcome(recorded(name))


def test_record_ids_are_unique_in_a_capture() -> None:
    """Every record of a capture has an id and a listing key of its own."""
    for name in ("sellers", "variants"):
        records = tuple(ADAPTER.read(recorded(name)))
        assert len({record.record_id for record in records}) == len(records) > 1
        assert len({record.listing_key for record in records}) == len(records)


def test_no_merchant_is_a_literal() -> None:
    """Rule 15: every merchant stands on its page."""
    named = [
        record.merchant
        for name in NAMES
        if "records" in outcome(recorded(name))
        for record in ADAPTER.read(recorded(name))
    ]
    assert any(named)
    assert all(one is None or one.locator.selector.value for one in named)


def test_exclusions_say_more_than_that_something_is_left_out() -> None:
    """Each reason of the inventory and the census is a sentence of its own."""
    reasons = [
        one.reason
        for table in (ADAPTER.fields, ADAPTER.surfaces)
        for one in table.values()
        if isinstance(one, Excluded)
    ]
    assert all(len(reason.split()) >= 3 for reason in reasons)
