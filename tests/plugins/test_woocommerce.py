"""WooCommerce shops: lists that move, variations, and prices in minor units."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from prw_plugin_woocommerce import WooCommerce
from prw_plugin_woocommerce.listing import NoProducts
from prw_plugin_woocommerce.settings import WooCommerceSettings
from prw_sdk.adapter import Checkpoint, Excluded, Net, Source, Stored, Target
from prw_sdk.evidence import Capture
from prw_sdk.locate import leads_back
from prw_sdk.testing import fixtures
from prw_sdk.testing.bench import with_body
from prw_sdk.testing.reading import claims
from tests.plugins.nets import Missing, Pages, as_json
from tests.plugins.reading import plain

SHOP = "https://shop.example"
API = f"{SHOP}/wp-json/wc/store/v1/products"
LIST = f"{API}?per_page=100&orderby=id&order=asc"
SITE = f"{SHOP}/wp-json/?_fields=name,description,url,home"
FIXTURES = Path(__file__).parents[2] / "plugins" / "woocommerce" / "fixtures"
ADAPTER = WooCommerce()
AMOUNT = '<span class="woocommerce-Price-amount amount"><bdi>%s</bdi></span>'


def listing(*numbers: int, variations: int = 0) -> bytes:
    """A page of the shop's list."""
    held = [{"id": 1000 + at} for at in range(variations)]
    return as_json([{"id": n, "variations": held} for n in numbers])


def shop(*pages: bytes | int) -> Pages:
    """A shop with these pages, and an empty one after them."""
    every = enumerate((*pages, listing()), start=1)
    return Pages({f"{LIST}&page={number}": page for number, page in every}, "application/json")


async def planned(net: Net, checkpoint: Checkpoint | None = None, **settings: Any) -> list[str]:
    """What is planned."""
    source = Source("src_test", WooCommerceSettings(shop=SHOP, **settings))
    batches = [batch async for batch in ADAPTER.plan(source, checkpoint, net)]
    return [target.native_id for batch in batches for target in batch.targets]


async def test_products_are_planned_once_in_the_order_of_their_numbers() -> None:
    """Pages may overlap, and a run is taken up after its checkpoint (replay rules 1 and 4)."""
    net = shop(listing(1, 2), listing(2, 30))
    assert await planned(net) == ["1", "2", "30"]
    assert await planned(net, Checkpoint({"after": 2})) == ["30"]
    assert await planned(net, Checkpoint({"complete": True})) == ["1", "2", "30"]


async def test_the_end_of_the_list_may_be_an_error() -> None:
    """Some sites answer a page beyond the last one with 400; any other error ends the plan."""
    net = shop(listing(1), 400)
    assert await planned(net) == ["1"]
    with pytest.raises(Missing, match="503"):
        await planned(shop(listing(1), 503))


async def test_the_site_says_how_many_pages_there_are() -> None:
    """An empty page between others is no end, and none is asked for beyond the last one."""
    net = shop(listing(1), listing(), listing(3))
    net.headers = (("x-wp-totalpages", "3"),)
    assert await planned(net) == ["1", "3"]
    assert f"{LIST}&page=4" not in net.asked


async def test_a_product_of_many_variations_is_a_target_for_each_page() -> None:
    """None of them is left out, however many there are."""
    assert await planned(shop(listing(7, variations=201))) == ["7", "7/2", "7/3"]


async def test_what_is_no_woocommerce_shop_says_so() -> None:
    """With the setting to look at."""
    with pytest.raises(NoProducts, match="`rest`"):
        await planned(Pages({}))
    with pytest.raises(NoProducts, match="`shop`"):
        await planned(Pages({f"{LIST}&page=1": b"<html>"}, "text/html"))


async def test_a_product_is_fetched_with_its_variations_and_the_site() -> None:
    """Every response that the record is read from is a part; the site is asked for once."""
    held = as_json({"id": 7, "variations": [{"id": 8}]})
    more = f"{API}?type=variation&parent=7&per_page=100&page=%d&orderby=id&order=asc"
    net = Pages({f"{API}/7": held, more % 1: b"[]", more % 2: b"[]", SITE: b"{}"})
    adapter = WooCommerce()
    for native_id in ("7", "7/2"):
        parts = (await adapter.fetch(Target(native_id, f"{API}/7"), net)).parts
        assert [part.role for part in parts] == ["product", "variations", "site"]
    assert net.asked.count(SITE) == 1
    assert net.asked.count(more % 1) == net.asked.count(more % 2) == 1


async def test_a_site_that_keeps_its_entry_to_itself_is_no_part() -> None:
    """The product is kept all the same; no name, no merchant."""
    net = Pages({f"{API}/7": as_json({"id": 7}), SITE: 401})
    parts = (await ADAPTER.fetch(Target("7", f"{API}/7"), net)).parts
    assert [part.role for part in parts] == ["product"]


def priced(price: str, html: str, unit: int = 2, **more: Any) -> Capture:
    """The capture of a product with that price."""
    capture = fixtures.read(FIXTURES / "sale", ADAPTER).capture
    part = capture.part("product")
    value = json.loads(part.body)
    value["prices"] |= {"price": price, "currency_minor_unit": unit, **more}
    value["price_html"] = html
    return with_body(capture, part, json.dumps(value).encode())


def claimed(capture: Capture) -> str | None:
    """The price that is claimed, whose place has to hold it."""
    (record,) = ADAPTER.read(capture)
    assert all(leads_back(claim, capture) for claim in claims(record))
    return next((c.value_as_stated for c in record.claims if c.attribute == "offer:price"), None)


@pytest.mark.parametrize(
    ("price", "html", "expected"),
    [
        ("1999", AMOUNT % "19,99&nbsp;&euro;", "19,99\xa0€"),
        ("123450", AMOUNT % "1.234,50 €", "1.234,50 €"),
        ("1900", AMOUNT % "19 €", "19 €"),
        ("89", AMOUNT % "€0.89", "€0.89"),
        ("1999", f"<del>{AMOUNT % '24,99 €'}</del> <ins>{AMOUNT % '19,99 €'}</ins>", "19,99 €"),
        ("1999", AMOUNT % "24,99 €", None),
        ("1999", "<p>19,99 €</p>", "19,99 €"),
        ("1999", "price on request", None),
        ("1999", "", None),
        ("0", AMOUNT % "0,00 €", None),
        ("1999", f"{AMOUNT % '9,99 €'} &ndash; {AMOUNT % '19,99 €'}", "19,99 €"),
    ],
)
def test_a_price_in_minor_units_is_claimed_as_it_is_written_out(
    price: str, html: str, expected: str | None
) -> None:
    """1999 alone would read as a hundred times the price; only an amount with its digits is claimed."""
    assert claimed(priced(price, html)) == expected


def test_a_currency_without_minor_units_is_claimed_as_the_number() -> None:
    """4200 yen are 4200 yen."""
    assert claimed(priced("4200", "", unit=0)) == "4200"


def test_a_range_is_no_price() -> None:
    """What several variations cost is the price of none."""
    bounds: dict[str, Any] = {"price_range": {"min_amount": "999", "max_amount": "1999"}}
    assert claimed(priced("999", AMOUNT % "9,99 €", **bounds)) is None


def test_a_variation_has_its_own_price_number_and_choice() -> None:
    """It takes over the rest from its product."""
    capture = fixtures.read(FIXTURES / "variations", ADAPTER).capture
    first, second = (plain(record) for record in ADAPTER.read(capture))
    assert first["claims"]["storage:capacity"] == "1 TB"
    assert second["claims"]["storage:capacity"] == "2 TB"
    assert first["claims"]["offer:price"] != second["claims"]["offer:price"]
    assert first["claims"]["core:description"] == second["claims"]["core:description"]
    assert first["listing_key"] == "52#variation=53"


def test_who_sells_elsewhere_is_not_the_site() -> None:
    """Replay rule 15: a product that a partner sells has no merchant that the record names."""
    capture = fixtures.read(FIXTURES / "sold-elsewhere", ADAPTER).capture
    (record,) = ADAPTER.read(capture)
    assert record.merchant is None


def config(**settings: Any) -> Any:
    """The config of a source with these settings."""
    return ADAPTER.config(Source("src_test", WooCommerceSettings(shop=SHOP, **settings)))


def test_settings_extend_and_exclude() -> None:
    """A source names attributes and fields, and leaves others out with a reason."""
    seller = "extensions.market.store_name"
    found = config(attributes={"Größe": "core:pack_quantity"}, fields={seller: "offer:seller"})
    assert ADAPTER.disposition("attribute.größe", found) == Stored("core:pack_quantity")
    assert ADAPTER.disposition(seller, found) == Stored("offer:seller")
    assert isinstance(ADAPTER.disposition("site.name", found), Excluded)
    left = config(exclusions={"sku": "the supplier's"})
    assert ADAPTER.disposition("sku", left) == Excluded("the supplier's")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shop": "shop.example"},
        {"shop": SHOP, "rest": "/wp-json/"},
        {"shop": SHOP, "categories": ["a b"]},
        {"shop": SHOP, "fields": {"sku": "mpn"}},
        {"shop": SHOP, "exclusions": {"sku": ""}},
        {"shop": SHOP, "category": ["a"]},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    """With the field in the message."""
    with pytest.raises(ValidationError):
        WooCommerceSettings(**settings)
