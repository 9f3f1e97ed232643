"""Shopify shops: lists that move while they are read, locked shops, and what of a product is claimed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from prw_plugin_shopify import Shopify
from prw_plugin_shopify.listing import NoProducts
from prw_plugin_shopify.reading import is_gtin
from prw_plugin_shopify.settings import ShopifySettings
from prw_sdk.adapter import Checkpoint, Excluded, Net, Source, Stored, Target
from prw_sdk.evidence import Part
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.testing import fixtures
from prw_sdk.testing.bench import with_body
from tests.plugins.nets import Missing, Pages, as_json
from tests.plugins.reading import plain

SHOP = "https://shop.example"
LIST = f"{SHOP}/products.json?limit=250"
FIXTURES = Path(__file__).parents[2] / "plugins" / "shopify" / "fixtures"
ADAPTER = Shopify()


def listing(*numbers: int) -> bytes:
    """A page of the shop's list."""
    return as_json({"products": [{"id": n, "handle": f"p{n}"} for n in numbers]})


def shop(*pages: bytes, **more: bytes | int) -> Pages:
    """A shop with these pages, and an empty one after them."""
    bodies: dict[str, bytes | int] = dict(more)
    for number, page in enumerate((*pages, listing()), start=1):
        bodies[f"{LIST}&page={number}"] = page
    return Pages(bodies, "application/json")


async def planned(
    net: Net, checkpoint: Checkpoint | None = None, **settings: Any
) -> tuple[list[str], list[object]]:
    """What is planned, and the checkpoints of its batches."""
    source = Source("src_test", ShopifySettings(shop=SHOP, **settings))
    batches = [batch async for batch in ADAPTER.plan(source, checkpoint, net)]
    ids = [target.native_id for batch in batches for target in batch.targets]
    return ids, [dict(batch.then.state) for batch in batches if batch.then]


async def test_products_are_planned_once_in_the_order_of_their_numbers() -> None:
    """A product that stands on two pages is one target (replay rule 1)."""
    ids, states = await planned(shop(listing(30, 20), listing(20, 10)), batch_size=2)
    assert ids == ["10", "20", "30"]
    assert states == [{"after": 20}, {"after": 30}, {"complete": True}]


async def test_a_plan_goes_on_after_its_checkpoint() -> None:
    """A resumed run plans what comes after, and a complete one begins anew (replay rule 4)."""
    pages = shop(listing(30, 20), listing(10))
    assert (await planned(pages, Checkpoint({"after": 10})))[0] == ["20", "30"]
    assert (await planned(pages, Checkpoint({"complete": True})))[0] == ["10", "20", "30"]


async def test_a_product_that_slips_to_a_page_already_read_is_found() -> None:
    """While page 2 is read a product of page 1 goes, and the first of page 2 takes its place."""

    class Moving(Pages):
        async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
            part = await super().get(url, role=role, accept=accept)
            if url.endswith("page=1"):
                self.bodies[f"{LIST}&page=1"] = listing(4, 3)
                self.bodies[f"{LIST}&page=2"] = listing(1)
            return part

    net = Moving(shop(listing(5, 4), listing(3, 2)).bodies, "application/json")
    assert (await planned(net))[0] == ["1", "3", "4", "5"]


@pytest.mark.parametrize("refused", [400, 422])
async def test_where_a_page_is_refused_the_walk_goes_on_by_numbers(refused: int) -> None:
    """Shopify gives no page beyond a limit of its own."""
    net = shop(listing(30, 20))
    net.bodies[f"{LIST}&page=2"] = refused
    for since, numbers in ((0, (5, 6)), (6, (7, 20)), (20, (30,)), (30, ())):
        net.bodies[f"{LIST}&since_id={since}"] = listing(*numbers)
    assert (await planned(net))[0] == ["5", "6", "7", "20", "30"]


async def test_a_shop_that_knows_no_pages_ends() -> None:
    """The same answer to every number is met once more by number, and then the walk ends."""

    class Stuck(Pages):
        async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
            self.bodies[url] = listing(1, 2)
            return await super().get(url, role=role, accept=accept)

    net = Stuck({}, "application/json")
    assert (await planned(net))[0] == ["1", "2"]
    assert len(net.asked) < 20


async def test_collections_are_listed_one_after_another() -> None:
    """Only their products, each once."""
    within = f"{SHOP}/collections/%s/products.json?limit=250&page=%d"
    bodies = {within % ("a", 1): listing(1, 2), within % ("b", 1): listing(2, 3)}
    bodies |= {within % ("a", 2): listing(), within % ("b", 2): listing()}
    found, _ = await planned(Pages(bodies, "application/json"), collections=["a", "b"])
    assert found == ["1", "2", "3"]


async def test_a_locked_shop_is_a_login_page() -> None:
    """Its list and its products lead to the page that asks for the password."""
    locked = {f"{LIST}&page=1": f"{SHOP}/password", f"{SHOP}/products/p1.json": f"{SHOP}/password"}
    net = Pages({f"{SHOP}/password": b"<html>Enter"}, "text/html", locked)
    with pytest.raises(FetchFailed) as told:
        await planned(net)
    assert told.value.outcome is Outcome.LOGIN_PAGE
    with pytest.raises(FetchFailed) as told:
        await ADAPTER.fetch(target("p1"), net)
    assert told.value.outcome is Outcome.LOGIN_PAGE


async def test_what_is_no_shopify_shop_says_so() -> None:
    """With the setting to look at."""
    with pytest.raises(NoProducts, match="`shop`"):
        await planned(Pages({f"{LIST}&page=1": b"<html>"}, "text/html"))
    with pytest.raises(Missing):
        await planned(Pages({}))


def target(handle: str) -> Target:
    """A product as planned."""
    return Target("1", f"{SHOP}/products/{handle}.json")


async def test_without_an_embed_the_shops_own_entry_is_kept() -> None:
    """Every response that the record is read from is a part."""
    address = f"{SHOP}/products/p1"
    bodies: dict[str, bytes | int] = {f"{address}.json": b"{}", f"{address}.oembed": b"{}"}
    bodies[f"{SHOP}/meta.json"] = b"{}"
    for gone, roles in (("", "product embed"), (f"{address}.oembed", "product shop")):
        net = Pages({url: body for url, body in bodies.items() if url != gone})
        parts = (await ADAPTER.fetch(target("p1"), net)).parts
        assert [part.role for part in parts] == roles.split()
    failing = Pages({**bodies, f"{address}.oembed": 503})
    with pytest.raises(Missing, match="503"):
        await ADAPTER.fetch(target("p1"), failing)


def read(case: str, **changed: Any) -> list[dict[str, Any]]:
    """The records of a fixture whose first variant says something else."""
    capture = fixtures.read(FIXTURES / case, ADAPTER).capture
    part = capture.part("product")
    value = copy.deepcopy(json.loads(part.body))
    value["product"]["variants"][0] |= changed
    capture = with_body(capture, part, json.dumps(value).encode())
    return [plain(record) for record in ADAPTER.read(capture)]


@pytest.mark.parametrize(
    ("barcode", "is_one"),
    [
        ("4006381333931", True),
        ("036000291452", True),
        ("96385074", True),
        ("04006381333931", True),
        ("4006381333932", False),
        ("RGX2-1T", False),
        ("400638133393", False),
        ("٤٠٠٦٣٨١٣٣٣٩٣١", False),
        ("", False),
    ],
)
def test_a_barcode_is_a_gtin_only_where_it_is_one(barcode: str, is_one: bool) -> None:
    """Shops keep numbers of their own there; a number that is one is claimed as it stands."""
    assert is_gtin(barcode) is is_one
    claims = read("variants", barcode=barcode)[0]["claims"]
    assert claims.get("core:gtin") == (barcode if is_one else None)


def test_a_price_is_claimed_as_stated_and_a_currency_never_invented() -> None:
    """What the shop does not say, the source's settings may hint at, and no claim does."""
    first = read("without-embed", price="1,015.00")[0]["claims"]
    assert first["offer:price"] == "1,015.00"
    capture = fixtures.read(FIXTURES / "without-embed", ADAPTER).capture
    alone = type(capture)(
        capture.source_id,
        capture.native_record_id,
        capture.captured_at,
        capture.adapter,
        (capture.part("product"),),
        {"currency": "USD"},
    )
    (record,) = ADAPTER.read(alone)
    assert "offer:currency" not in {claim.attribute for claim in record.claims}
    assert record.merchant is None


def test_the_markets_currency_wins_over_the_shops() -> None:
    """Prices of a market are not in the shop's own currency."""
    record = read("without-embed", price_currency="CAD")[0]
    assert record["claims"]["offer:currency"] == "CAD"


def test_keys_hold_when_a_product_is_renamed() -> None:
    """Listings are known by numbers (replay rule 1)."""
    assert [one["listing_key"] for one in read("variants")] == [
        "8123456789012#variant=44100000000001",
        "8123456789012#variant=44100000000002",
    ]


def config(**settings: Any) -> Any:
    """The config of a source with these settings."""
    return ADAPTER.config(Source("src_test", ShopifySettings(shop=SHOP, **settings)))


def test_settings_extend_and_exclude() -> None:
    """A source names options and fields, and leaves others out with a reason."""
    found = config(options={"Speicher": "storage:memory"}, fields={"variants.sku": "core:mpn"})
    assert ADAPTER.disposition("option.speicher", found) == Stored("storage:memory")
    assert ADAPTER.disposition("variants.sku", found) == Stored("core:mpn")
    assert isinstance(ADAPTER.disposition("option.Colour", found), Excluded)
    left = config(exclusions={"vendor": "the supplier"})
    assert ADAPTER.disposition("vendor", left) == Excluded("the supplier")


def test_where_the_vendor_sells_the_shop_does_not() -> None:
    """Replay rule 15: a marketplace's own name is not the seller of what others offer there."""
    found = config(fields={"vendor": "offer:seller"})
    assert ADAPTER.disposition("vendor", found) == Stored("offer:seller")
    assert isinstance(ADAPTER.disposition("embed.provider", found), Excluded)
    assert isinstance(ADAPTER.disposition("shop.name", found), Excluded)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shop": "shop.example"},
        {"shop": f"{SHOP}/products.json?x"},
        {"shop": SHOP, "collections": ["/collections/a"]},
        {"shop": SHOP, "fields": {"vendor": "seller"}},
        {"shop": SHOP, "exclusions": {"vendor": " "}},
        {"shop": SHOP, "batch_size": 0},
        {"shop": SHOP, "colections": ["a"]},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    """With the field in the message."""
    with pytest.raises(ValidationError):
        ShopifySettings(**settings)
