"""Saved pages of real shops, where the setting PRW_SAMPLES names the folder that holds them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.adapter import NotARecord
from prw_sdk.evidence import Capture
from prw_sdk.locate import leads_back
from tests.plugins.reading import capture, claims, plain

SAMPLES = os.environ.get("PRW_SAMPLES")
pytestmark = pytest.mark.skipif(SAMPLES is None, reason="PRW_SAMPLES names no folder of real pages")

ADAPTER = SchemaOrg()
SECONDS = 1.0

STATED: dict[str, dict[str, str | None]] = {
    "costco": {
        "core:title": "AFA Stainless 33-inch Sink and Semi Pro Faucet Combo",
        "core:brand": "AFA",
        "core:sku": "1275464",
        "offer:price": "329.99",
        "offer:currency": "USD",
        "merchant": "Costco Wholesale",
    },
    "etsy": {
        "core:brand": "OliveCreativeCompany",
        "offer:price": "43.90",
        "offer:currency": "EUR",
        "merchant": None,
    },
    "gh-dp-nas-01": {
        "core:title": "Asustor AS6210T, 4x Gb LAN (90IX00X1-BW3S10)",
        "offer:price": None,
        "merchant": None,
    },
    "gh-dp-trockn-01": {
        "core:title": "Miele TCF620 WP Eco Wärmepumpentrockner",
        "offer:price": None,
        "merchant": None,
    },
    "opengraph-product": {
        "core:title": "Better Off Dead [Exclusive Blu-ray Steelbook]",
        "core:gtin": "32429335302",
        "core:sku": "fye.000000032429335302",
        "core:condition": "new",
        "offer:price": "17.99",
        "offer:currency": "USD",
        "merchant": None,
    },
    "potterybarn": {
        "core:title": "Tully Sconce",
        "offer:price": None,
        "offer:availability": "http://schema.org/OutOfStock",
        "merchant": "Pottery Barn",
    },
    "wayfair": {
        "core:title": "Penhook 20.47'' Wide Armchair",
        "core:sku": "W005759888",
        "core:brand": "Wade Logan®",
        "offer:price": "111.99",
        "offer:currency": "USD",
        "merchant": "Wayfair",
    },
}
"""What each page states, read by a person; None where it states nothing definite."""

WITHOUT = ("amazon", "gh-lst-nas-01")


def saved(name: str) -> Capture:
    """The capture of a saved page."""
    body = (Path(SAMPLES or "") / "pages" / f"{name}.html").read_bytes()
    return capture(body, f"https://samples.example/{name}.html")


@pytest.mark.parametrize("name", STATED)
def test_a_real_page_is_read_with_locators_that_lead_back(name: str) -> None:
    """What a person reads in the page's markup is what the record says, and it is found again in the bytes."""
    taken = saved(name)
    (record,) = ADAPTER.read(taken)
    found: dict[str, Any] = plain(record)["claims"] | {"merchant": plain(record)["merchant"]}
    assert {key: found.get(key) for key in STATED[name]} == STATED[name]
    assert all(leads_back(claim, taken) for claim in claims(record))
    assert [
        one for one in ADAPTER.stated(taken) if ADAPTER.disposition(one.name, taken.config) is None
    ] == []


@pytest.mark.parametrize("name", WITHOUT)
def test_a_real_page_without_product_markup_says_so(name: str) -> None:
    """A page whose product stands in prose alone, and a list."""
    with pytest.raises(NotARecord, match="no product markup"):
        ADAPTER.read(saved(name))


@pytest.mark.parametrize("name", [*STATED, *WITHOUT])
def test_a_real_page_is_read_within_a_second(name: str) -> None:
    """Pages of a megabyte included."""
    taken = saved(name)
    start = time.perf_counter()
    ADAPTER.stated(taken)
    assert time.perf_counter() - start < SECONDS
