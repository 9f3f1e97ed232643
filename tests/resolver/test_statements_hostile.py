"""Statements made to harm: a page's words cost time in proportion to their length, and none is beyond its column."""

from __future__ import annotations

import time

import pytest

from prw_resolver.vocabulary.keys import classify
from prw_resolver.vocabulary.model import Basis, Value
from prw_resolver.vocabulary.normalisers import Said, settle
from prw_resolver.vocabulary.statement import Statement
from prw_resolver.vocabulary.texts import is_web_address
from tests.resolver.statements import REFUSED, definition, packaged, value

MEGABYTE = 1_000_000
PATIENCE = 10.0
"""Seconds for all attributes together; what grew with the square of the length took minutes."""

SEEDS = (
    "<a",
    "</",
    "1 ",
    "1'",
    "$1 ",
    "1 TB ",
    "no a ",
    "laptop ",
    "SD ",
    "pack of ",
    "\ufdfa",
    "\u0301\u0327",
    "a",
)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_statement_of_a_megabyte_costs_no_more_than_a_moment(seed: str) -> None:
    """Every attribute is settled from it, claims and hints, while other captures wait for the same thread."""
    text = (seed * MEGABYTE)[:MEGABYTE]
    said = [Said(Statement(text, currency="USD"), "claim")]
    began = time.process_time()
    for held in packaged().attributes:
        settle(held, said, said)
    assert time.process_time() - began < PATIENCE


def test_a_class_is_told_from_the_beginning_of_a_long_title() -> None:
    """A title of the greatest length that is kept costs no more than its beginning."""
    title = ("laptop " * 20_000)[:20_000]
    held = [
        Value("core:title", 1, title, "", Basis.STATED, None),
        Value("storage:capacity", 1, "1", "By", Basis.STATED, None),
    ]
    began = time.process_time()
    classify(packaged(), held, frozenset())
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("999999999999999.9999", "999999999999999.9999"),
        ("1000000000000000", REFUSED),
        ("9" * 40, REFUSED),
        ("0.00001", REFUSED),
        ("12.50000", "12.5"),
        ("-5", REFUSED),
    ],
)
def test_a_price_beyond_its_column_cannot_be_read(stated: str, expected: str) -> None:
    """An absurd amount is no amount: it neither fails the capture nor stops whoever reads the stream."""
    assert value("offer:price", stated, currency="USD", machine=True) == expected


def test_what_is_far_too_long_is_unreadable_and_not_silence() -> None:
    """A condition of a megabyte leaves the condition open, rather than new."""
    verdict = settle(definition("core:condition"), [Said(Statement("x" * MEGABYTE), "claim")], [])
    assert verdict.ambiguous
    assert verdict.settled is None


def test_a_title_too_long_to_be_looked_through_is_not_silence() -> None:
    """Whether it hints at a pack is not known, so the pack is open rather than one."""
    title = [Said(Statement("x" * 20_001), "title")]
    assert settle(definition("core:pack_quantity"), [], title).ambiguous
    stated = [Said(Statement("2"), "claim")]
    verdict = settle(definition("core:pack_quantity"), stated, title)
    assert verdict.settled is not None
    assert verdict.settled.reading.value == "2"


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://shop.example/p", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//shop.example/p", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_only_an_absolute_address_of_the_web_is_one(url: str, fits: bool) -> None:
    """Nothing else may become a link."""
    assert is_web_address(url) is fits


def test_an_address_longer_than_any_is_not_read() -> None:
    """Addresses stand in indexes and in links."""
    assert value("offer:url", "https://shop.example/" + "a" * 3000) == REFUSED
