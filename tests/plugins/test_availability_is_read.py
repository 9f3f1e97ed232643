"""What the shipped adapters state of availability means something to the resolver."""

from __future__ import annotations

import pytest

from prw_resolver.catalog.model import AVAILABILITIES
from prw_sdk.adapter import Adapter
from tests.plugins.shipped import ADAPTERS, claimed
from tests.resolver.statements import value

KEY = "offer:availability"


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_every_recorded_statement_of_availability_becomes_a_typed_value(
    adapter: type[Adapter],
) -> None:
    """No adapter states availability in words that the packaged vocabulary refuses."""
    stated = {claim.value_as_stated for claim in claimed(adapter) if claim.attribute == KEY}
    assert stated
    assert {
        text: value(KEY, text) for text in stated if value(KEY, text) not in AVAILABILITIES
    } == {}
