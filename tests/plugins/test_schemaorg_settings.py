"""What a source's settings change, and how they reach the resolver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from prw_plugin_schemaorg import SchemaOrg
from prw_plugin_schemaorg.settings import SchemaOrgSettings
from prw_sdk.adapter import Excluded, NotARecord, Source, Stored
from prw_sdk.evidence import Presence
from tests.plugins.reading import capture, plain

FOLDER = Path(__file__).parents[2] / "plugins" / "schemaorg" / "fixtures"
ADAPTER = SchemaOrg()


def config(**settings: Any) -> dict[str, object]:
    """The config that a capture gets, after a round trip through JSON as in the contract."""
    made = SchemaOrgSettings(site="https://shop.example", **settings)
    source = Source("src_test", made, locale="de_DE", currency="EUR")
    return dict(json.loads(json.dumps(ADAPTER.config(source))))


def read(name: str, **settings: Any) -> dict[str, Any]:
    """The first record of a fixture under these settings."""
    body = (FOLDER / name / "page.html").read_bytes()
    taken = capture(body, f"https://shop.example/p/{name}", config=config(**settings))
    return plain(next(iter(ADAPTER.read(taken))))


def test_config_carries_the_market_and_the_readers_settings() -> None:
    """A capture pins what `read` needs: locale, currency, names of properties."""
    pinned = config(properties={"Speicher": "storage:memory"})
    assert pinned["locale"] == "de_DE"
    assert pinned["currency"] == "EUR"
    assert pinned["properties"] == {"Speicher": "storage:memory"}


def test_a_source_can_name_more_properties() -> None:
    """`properties` extends the inventory and the reader alike."""
    named = {"Speicher": "storage:memory"}
    assert read("price-specification", properties=named)["claims"]["storage:memory"] == "DDR4"
    found = ADAPTER.disposition("additionalProperty.Speicher", config(properties=named))
    assert found == Stored("storage:memory")


@pytest.mark.parametrize(
    ("name", "attribute", "fixture"),
    [
        ("additionalProperty.Pack size", "core:pack_quantity", "price-specification"),
        ("identifier.EAN", "core:gtin", "price-specification"),
        ("sku", "core:sku", "one-of-several"),
        ("offers.price", "offer:price", "one-of-several"),
        ("product:ean", "core:gtin", "opengraph"),
    ],
)
def test_a_source_can_exclude_a_name_with_a_reason(name: str, attribute: str, fixture: str) -> None:
    """`exclusions` wins in the inventory, and the value is in no record."""
    assert attribute in read(fixture)["claims"]
    assert attribute not in read(fixture, exclusions={name: "wrong in this shop"})["claims"]
    found = ADAPTER.disposition(name, config(exclusions={name: "wrong in this shop"}))
    assert found == Excluded("wrong in this shop")


def test_the_sites_name_can_be_kept_from_being_the_merchant() -> None:
    """Replay rule 15: a marketplace's own name is not the seller of what others offer there."""
    assert read("opengraph")["merchant"] == "Example Shop"
    assert read("opengraph", site_is_seller=False)["merchant"] is None
    assert read("opengraph", exclusions={"og:site_name": "a brand name"})["merchant"] is None


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"site": "shop.example"},
        {"site": "https://shop.example", "include": ["("]},
        {"site": "https://shop.example", "exclusions": {"sku": " "}},
        {"site": "https://shop.example", "properties": {"Speicher": "memory"}},
        {"site": "https://shop.example", "sitemap": ["https://shop.example/sitemap.xml"]},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    """No start, no expression, no reason, no attribute, no such name."""
    with pytest.raises(ValidationError):
        SchemaOrgSettings(**settings)


def test_an_absent_page_is_no_record() -> None:
    """A capture of a 404 or 410 says that the target is gone."""
    body = (FOLDER / "jsonld-graph" / "page.html").read_bytes()
    gone = capture(body, "https://shop.example/p/x", presence=Presence.ABSENT)
    with pytest.raises(NotARecord, match="gone"):
        ADAPTER.read(gone)


def test_what_is_no_page_is_no_record() -> None:
    """An image under a product's address is not parsed."""
    with pytest.raises(NotARecord, match="image/png"):
        ADAPTER.read(capture(b"\x89PNG", "https://shop.example/p/x", content_type="image/png"))
    with pytest.raises(NotARecord, match="empty"):
        ADAPTER.read(capture(b"", "https://shop.example/p/x"))
