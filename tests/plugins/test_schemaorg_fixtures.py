"""The recorded pages beyond what the conformance suite asks of them."""

from __future__ import annotations

from pathlib import Path

import extruct
import pytest

from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.adapter import Excluded
from prw_sdk.evidence import Capture, Record
from prw_sdk.locate import fold
from prw_sdk.testing import fixtures, reading
from prw_sdk.testing.reading import claims

FOLDER = Path(__file__).parents[2] / "plugins" / "schemaorg" / "fixtures"
ADAPTER = SchemaOrg()
FIXTURES = {one.case: one.capture for one in fixtures.load(FOLDER, ADAPTER)}
NAMES = sorted(FIXTURES)


def recorded(name: str) -> Capture:
    """The capture of a recorded page."""
    return FIXTURES[name]


def records(name: str) -> tuple[Record, ...]:
    """The records of a recorded page, none where it is no record."""
    return reading.read(ADAPTER, recorded(name))[0]


@pytest.mark.parametrize("name", NAMES)
def test_an_independent_reader_finds_the_same_values(name: str) -> None:
    """What is claimed from microdata, extruct's microdata reader finds on the page too."""
    taken = recorded(name)
    if not records(name):
        return
    markup = taken.part("page").text()
    syntaxes = ["microdata"]
    known = set(_texts(extruct.extract(markup, base_url="", syntaxes=syntaxes)))
    for record in records(name):
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


def test_record_ids_are_unique_in_a_capture() -> None:
    """Every record of a capture has an id and a listing key of its own."""
    for name in ("sellers", "variants"):
        found = records(name)
        assert len({record.record_id for record in found}) == len(found) > 1
        assert len({record.listing_key for record in found}) == len(found)


def test_exclusions_say_more_than_that_something_is_left_out() -> None:
    """Each reason of the inventory and the census is a sentence of its own."""
    reasons = [
        one.reason
        for table in (ADAPTER.fields, ADAPTER.surfaces)
        for one in table.values()
        if isinstance(one, Excluded)
    ]
    assert all(len(reason.split()) >= 3 for reason in reasons)
