"""Reported inputs of shops: each is read rightly, or given the outcome that fits, and no name of it is unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.account import Account, account
from prw_sdk.adapter import Excluded, NotARecord
from prw_sdk.evidence import Record
from prw_sdk.locate import fold, leads_back
from tests.plugins.reading import capture, claims, plain
from tests.sdk.written_jsonld import BROKEN, PRODUCT, READ, TEMPLATES, script, with_offers

ADAPTER = SchemaOrg()


def looked_at(markup: str) -> tuple[tuple[Record, ...], Account]:
    """The page's records, whose locators lead back, and what became of every name; none is unknown."""
    taken = capture(
        markup.encode(), "https://shop.example/p/1", content_type="text/html; charset=utf-8"
    )
    records = tuple(ADAPTER.read(taken))
    assert all(leads_back(claim, taken) for record in records for claim in claims(record))
    found = account(ADAPTER, taken, records)
    assert found.unknown == ()
    return records, found


def claimed(markup: str) -> dict[str, Any]:
    """What the page's one record claims."""
    ((record,), _) = looked_at(markup)
    stated: dict[str, Any] = plain(record)["claims"]
    return stated


@pytest.mark.parametrize("kind", READ)
def test_a_product_is_read_however_its_shop_writes_it(kind: str) -> None:
    """Name, number, price and currency."""
    found = claimed(READ[kind])
    assert fold(found.pop("core:title")) == "Desk lamp"
    found.pop("core:image", None)
    assert found == {"core:sku": "L-1", "offer:price": "9.90", "offer:currency": "EUR"}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_script_is_told_as_such_and_never_guessed_at(kind: str) -> None:
    """Alone it makes the page no record, with the reason; beside a good one it does no harm."""
    with pytest.raises(NotARecord, match="JSON-LD is broken"):
        looked_at(BROKEN[kind])
    assert claimed(BROKEN[kind] + script(PRODUCT))["core:sku"] == "L-1"


@pytest.mark.parametrize("text", TEMPLATES)
def test_a_template_that_nobody_filled_in_is_no_claim(text: str) -> None:
    """In every markup; a page of nothing else is no record."""
    priced = with_offers(json.dumps({"price": text, "priceCurrency": "EUR"}))
    assert claimed(script(priced)) == {"core:title": "Desk lamp", "core:sku": "L-1"}
    written = text.replace("<", "&lt;")
    inline = f'<i itemprop="name">Lamp</i><i itemprop="sku">{written}</i>'
    item = f'<div itemscope itemtype="https://schema.org/Product">{inline}</div>'
    assert claimed(item) == {"core:title": "Lamp"}
    shared = (
        f'<meta property="og:type" content="product"><meta property="og:title" content="{written}">'
    )
    for empty in (shared, script(json.dumps({"@type": "Product", "name": text}))):
        with pytest.raises(NotARecord, match=r"states nothing|no product markup"):
            looked_at(empty)


def test_entities_in_a_text_are_kept_as_stated() -> None:
    """What is encoded twice is what the shop wrote."""
    stated = "Caf&eacute; &amp; Co"
    assert claimed(script(PRODUCT.replace("Desk lamp", stated)))["core:title"] == stated


def with_property(**stated: object) -> str:
    """The product with one labelled property."""
    one = json.dumps({"@type": "PropertyValue", **stated})
    return script(PRODUCT.replace('"sku"', f'"additionalProperty": [{one}], "sku"'))


STANDS: list[tuple[dict[str, object], str, str]] = [
    ({"name": "Capacity", "value": "2 TB"}, "storage:capacity", "2 TB"),
    ({"name": "Capacity", "value": "2 TB", "unitText": "TB"}, "storage:capacity", "2 TB"),
    ({"name": "Capacity", "value": "2 TB", "unitText": ""}, "storage:capacity", "2 TB"),
    ({"name": "Pack size", "value": 12, "unitText": "pcs."}, "core:pack_quantity", "12"),
    ({"name": "Pack size", "value": "12", "unitCode": "C62"}, "core:pack_quantity", "12"),
    ({"name": "Pack size", "value": {"value": 12}}, "core:pack_quantity", "12"),
    (
        {"name": "Pack size", "value": {"value": 12, "unitText": "Stück"}},
        "core:pack_quantity",
        "12",
    ),
]
APART: list[tuple[dict[str, object], str]] = [
    ({"name": "Packungsinhalt", "value": 500, "unitText": "g"}, "Packungsinhalt.quantity"),
    ({"name": "Capacity", "value": "2", "unitCode": "E35"}, "Capacity.quantity"),
    ({"name": "Capacity", "value": {"value": "1.5", "unitText": "TB"}}, "Capacity.quantity"),
    ({"name": "Capacity", "minValue": 1, "maxValue": 2, "unitText": "TB"}, "Capacity.minValue"),
    (
        {"name": "Capacity", "value": {"minValue": 1, "maxValue": 2}},
        "Capacity.quantity.minValue",
    ),
]


@pytest.mark.parametrize(("stated", "attribute", "value"), STANDS)
def test_a_property_whose_value_stands_by_itself_is_claimed(
    stated: dict[str, object], attribute: str, value: str
) -> None:
    """With its unit, or a count that needs none; the unit beside it is left out with a reason."""
    assert claimed(with_property(**stated))[attribute] == value


@pytest.mark.parametrize(("stated", "left_out"), APART)
def test_a_number_whose_unit_stands_apart_is_left_out_with_the_reason(
    stated: dict[str, object], left_out: str
) -> None:
    """One claim cannot hold both, and 500 g are not 500 pieces (replay rule 14)."""
    ((record,), found) = looked_at(with_property(**stated))
    named = {claim.attribute for claim in record.claims}
    assert not named & {"storage:capacity", "core:pack_quantity"}
    assert found.unread == ()
    name = f"additionalProperty.{left_out}"
    assert name in found.excluded
    how = ADAPTER.disposition(name, {})
    assert isinstance(how, Excluded)
    assert "unit" in how.reason or "range" in how.reason


RANGES = {
    "an aggregate": '{"@type": "AggregateOffer", "lowPrice": 9, "highPrice": 12, "priceCurrency": "EUR"}',
    "an aggregate of a known number": '{"lowPrice": "9", "offerCount": 4, "priceCurrency": "EUR"}',
    "bounds of a specification": '{"priceSpecification": {"minPrice": 9, "maxPrice": 12, "priceCurrency": "EUR"}}',
}


@pytest.mark.parametrize("kind", RANGES)
def test_a_range_of_prices_is_no_price(kind: str) -> None:
    """Neither bound is what anybody is asked; the names are accounted for all the same."""
    ((record,), found) = looked_at(script(with_offers(RANGES[kind])))
    assert plain(record)["claims"] == {"core:title": "Desk lamp", "core:sku": "L-1"}
    assert not {"offers.lowPrice", "offers.price"} & set(found.stored)
    assert {"offers.range.lowPrice", "offers.priceSpecification.minPrice"} & set(found.excluded)


@pytest.mark.parametrize(
    ("offers", "prices"),
    [
        ('{"lowPrice": "9.90", "highPrice": "9.90", "priceCurrency": "EUR"}', ["9.90"]),
        ('{"lowPrice": "9.90", "offerCount": 1, "priceCurrency": "EUR"}', ["9.90"]),
        (
            (
                '{"lowPrice": 9, "highPrice": 12, "priceCurrency": "EUR", "offers": '
                '[{"sku": "a", "price": 9}, {"sku": "b", "price": 12}]}'
            ),
            ["9", "12"],
        ),
        (
            (
                '{"priceSpecification": [{"price": 4.99, "referenceQuantity": {"value": 1, "unitCode": "KGM"}}, '
                '{"price": 9.90, "priceCurrency": "EUR"}]}'
            ),
            ["9.90"],
        ),
    ],
)
def test_an_aggregate_that_states_prices_gives_them(offers: str, prices: list[str]) -> None:
    """Bounds that are one price, the offers within; never the price of a kilogram."""
    records, found = looked_at(script(with_offers(offers)))
    assert found.unread == ()
    stated = [plain(record)["claims"] for record in records]
    assert [one["offer:price"] for one in stated] == prices
    assert {one["offer:currency"] for one in stated} == {"EUR"}


@pytest.mark.parametrize("name", ["weight", "width"])
def test_a_measure_is_left_out_whole(name: str) -> None:
    """A QuantitativeValue that no class asks for: value, unit and bounds each have a reason."""
    stated = {"@type": "QuantitativeValue", "value": 80, "unitCode": "GRM", "maxValue": 90}
    body = PRODUCT.replace('"sku"', f'"{name}": {json.dumps(stated)}, "sku"')
    _, found = looked_at(script(body))
    assert {f"{name}.value", f"{name}.unitCode", f"{name}.maxValue"} <= set(found.excluded)
