"""Real search results of a marketplace, read with nothing but the settings that the README shows."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from prw_plugin_marketplace_offers import MarketplaceOffers
from prw_plugin_marketplace_offers.settings import OffersSettings
from prw_sdk.account import account
from prw_sdk.adapter import Source
from prw_sdk.evidence import AdapterVersion, Capture, Part, Record
from prw_sdk.locate import leads_back

ROOT = Path(__file__).parents[2]
README = ROOT / "plugins/marketplace-offers/README.md"
SAMPLES = Path(os.environ.get("PRW_SAMPLES", "/nowhere")) / "ebay"
LISTS = sorted(SAMPLES.glob("*.json"))

needs_samples = pytest.mark.skipif(not LISTS, reason="PRW_SAMPLES names no folder with ebay/*.json")


@cache
def blocks() -> tuple[dict[str, Any], ...]:
    """The `[[source]]` tables that the README shows."""
    found = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    return tuple(source for text in found for source in tomllib.loads(text)["source"])


def capture(path: Path) -> Capture:
    """A page of the sample, whose list of items is the whole page."""
    settings = OffersSettings.model_validate({**blocks()[1]["settings"], "items": ""})
    body, now = path.read_bytes(), datetime.now(UTC)
    url = "https://api.market.example/search"
    digest = sha256(body).hexdigest()
    part = Part(
        "offers", digest, body, "application/json", url, url, 200, now, charset_used="utf-8"
    )
    adapter = MarketplaceOffers()
    return Capture(
        "src_market",
        path.stem,
        now,
        AdapterVersion(adapter.name, adapter.version),
        (part,),
        adapter.config(Source("src_market", settings)),
    )


def value(record: Record, attribute: str) -> str | None:
    """The first value of an attribute."""
    found = (claim.value_as_stated for claim in record.claims if claim.attribute == attribute)
    return next(found, None)


def test_every_source_that_the_readme_shows_has_usable_settings() -> None:
    """As the collector would read them."""
    assert len(blocks()) == 2
    for source in blocks():
        OffersSettings.model_validate(source["settings"])


@needs_samples
@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_real_listings_are_read_as_they_stand(path: Path) -> None:
    """Title, price, currency, condition and seller of each; claims lead back; no name is unknown.

    An item that the list shows twice is one listing for each seller that it names.
    """
    items = {
        (one["itemId"], one["seller"]["username"]): one for one in json.loads(path.read_bytes())
    }
    page, adapter = capture(path), MarketplaceOffers()
    records = tuple(adapter.read(page))
    assert len(records) == len(items)
    for record in records:
        assert record.merchant is not None
        item = items[record.listing_key.partition("#")[0], record.merchant.value_as_stated]
        assert value(record, "core:title") == item["title"]
        assert Decimal(value(record, "offer:price") or "") == Decimal(item["price"]["value"])
        assert value(record, "offer:currency") == item["price"]["currency"]
        assert value(record, "core:condition") == item["condition"]
    # a locator walks the whole page, so a sample of the records stands for all
    assert all(leads_back(claim, page) for record in records[::25] for claim in record.claims)
    assert account(adapter, page, records).unknown == ()


@needs_samples
def test_near_miss_models_stay_apart_and_are_given_no_number_that_they_do_not_state() -> None:
    """A title that names a neighbouring model is that offer's title, and no part number is made of it."""
    records = [record for path in LISTS for record in MarketplaceOffers().read(capture(path))]
    titles = Counter(value(record, "core:title") for record in records)
    assert any("RX 580" in str(title) for title in titles)
    assert any("RX 590" in str(title) for title in titles)
    assert not any(value(record, "core:mpn") or value(record, "core:gtin") for record in records)


@needs_samples
def test_what_sending_costs_is_no_price() -> None:
    """Shipping options are left out with a reason, and so are former prices and bids."""
    for path in LISTS:
        page = capture(path)
        for record in MarketplaceOffers().read(page):
            prices = [claim for claim in record.claims if claim.attribute == "offer:price"]
            assert [claim.locator.selector.value.rpartition("/")[2] for claim in prices] == [
                "value"
            ]
            assert all("/price/" in claim.locator.selector.value for claim in prices)
