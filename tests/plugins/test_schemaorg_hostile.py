"""Pages made to harm the reader: what a page costs grows with its length, not with its square."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.adapter import NotARecord
from prw_sdk.evidence import Claim, Locator, Selector, SelectorType
from prw_sdk.locate import leads_back
from tests.plugins.reading import capture

MEGABYTE = 1_000_000
PATIENCE = 10.0
"""Seconds of processor time; what grew with the square of the length took minutes."""

SCRIPT = '<script type="application/ld+json">%s</script>'
OFFER = '{"@type":"Offer","price":"%d","priceCurrency":"USD","seller":{"name":"s%d"}}'
VARIANT = '{"@type":"Product","sku":"%d","name":"v%d","offers":{"price":"1","priceCurrency":"USD"}}'


def filled(start: str, piece: str) -> str:
    """A script of a megabyte."""
    return SCRIPT % (start + piece * (MEGABYTE // len(piece)))


def listed(start: str, piece: str, times: int, end: str) -> str:
    """A script with a list of so many."""
    pieces = (piece % ((number,) * piece.count("%d")) for number in range(times))
    return SCRIPT % (start + ",".join(pieces) + end)


PAGES = {
    "comments": filled('{"@type":"Product","name":"x" ', "/* "),
    "strings": filled("", '"\\'),
    "quotes": filled('{"@type":"Product","name":"', '\\"'),
    "a last backslash": filled('{"@type":"Product" ', '"\\') + "\\",
    "blanks": filled("{bad ", ",                "),
    "arrays": filled("", "["),
    "objects": filled("", '{"a":'),
    "offers": listed('{"@type":"Product","name":"x","offers":[', OFFER, 5_000, "]}"),
    "variants": listed('{"@type":"ProductGroup","name":"x","hasVariant":[', VARIANT, 5_000, "]}"),
    "references": '<div itemscope itemtype="https://schema.org/Product" itemref="'
    + " ".join(f"i{number}" for number in range(5_000))
    + '"><p itemprop="name">x</p></div>'
    + "".join(f'<p id="i{number}" itemprop="q">y</p>' for number in range(5_000)),
    "one reference": '<body id="b">'
    + '<div itemscope itemtype="https://schema.org/Product" itemref="b b b b">x</div>' * 3_000,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_page_costs_no_more_than_a_moment(name: str) -> None:
    """Reading it ends, with records or without, and so does looking for a value in it."""
    page = capture(PAGES[name].encode(), "https://shop.example/p")
    began = time.process_time()
    with suppress(NotARecord):
        list(SchemaOrg().read(page))
    pointer = Selector(SelectorType.JSON_POINTER, "/offers/0/price")
    within = Selector(SelectorType.XPATH, "(//script)[1]", refined_by=pointer)
    leads_back(Claim("offer:price", "1", Locator("page", within)), page)
    assert time.process_time() - began < PATIENCE
