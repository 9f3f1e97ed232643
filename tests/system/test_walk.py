"""The whole walk, from the street's pages to the public catalogue, as the processes that an operator runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from prw_base.server.postgres import Cluster
from prw_examples.demo.audit.model import Listing
from prw_examples.street import Street, load_catalogue, load_truth
from prw_examples.street.truth import Expect, Outcome
from prw_sdk.spool import model as spool
from tests.support.doctored import Doctored
from tests.support.endstate import EndState, end_state
from tests.support.soundness import assert_sound
from tests.support.undisturbed import Undisturbed
from tests.support.walk import Walk, walking

TRUTH = load_truth()
SOURCES = ("src_lumen", "src_halden", "src_bazaarline")

EXPECTED = {
    Expect.RECORDS: (spool.Outcome.STORED, None),
    Expect.RECORDS_AFTER_RETRY: (spool.Outcome.STORED, None),
    Expect.NOT_A_RECORD: (spool.Outcome.REJECTED, "NOT_A_RECORD"),
    Expect.ABSENT: (spool.Outcome.ABSENT, "NOT_FOUND"),
    Expect.REDIRECT_REFUSED: (spool.Outcome.REJECTED, "PRIVATE_ADDRESS"),
    Expect.FORBIDDEN: (spool.Outcome.REJECTED, "ROBOTS_FORBIDDEN"),
}

STALE = "http://bazaarline.example/dp/B0KX990H2-KK"
"""The marketplace's listing that shows the part number of another drive."""
MEANT = "http://bazaarline.example/dp/B0KX990H2"
"""A listing of the drive that it is."""
PRICED = "http://lumenparts.example/p/kestrel-kx990-1tb"


@pytest.fixture
def shopfronts() -> Doctored:
    """The street's shopfronts, for the test to change."""
    return Doctored()


@pytest.fixture
def street(shopfronts: Doctored) -> Iterator[Street]:
    """A street of the test's own."""
    with Street.start(shopfronts=shopfronts) as started:
        yield started


# What the undisturbed walk came to


@pytest.mark.parametrize("expect", Expect)
def test_every_page_of_the_street_ends_as_it_should(
    undisturbed: Undisturbed, expect: Expect
) -> None:
    """Pages that state products are kept; the hostile ones have the outcome that fits, and its reason."""
    pages = [page for page in TRUTH.pages if page.expect is expect]
    ends = {
        page.url: (held.verdict.outcome, held.verdict.code)
        for page in pages
        if (held := undisturbed.pages.get(page.url)) is not None
    }
    assert ends == {page.url: EXPECTED[expect] for page in pages}
    asked = {
        Expect.FORBIDDEN: 0,
        Expect.RECORDS_AFTER_RETRY: 2,
    }.get(expect, 1)
    assert {undisturbed.served.get(page.url, 0) for page in pages} == {asked}


def test_every_listing_ends_as_the_truth_file_says(undisturbed: Undisturbed) -> None:
    """Accepted by rule, or asked of a person."""
    ends = {true.id: _end(undisturbed.listings.get(true.id)) for true in TRUTH.listings}
    assert ends == {true.id: true.outcome for true in TRUTH.listings}


def _end(listing: Listing | None) -> str:
    if listing is None:
        return "lost"
    if listing.has_open_case:
        return "mapped and asked" if listing.items else Outcome.CASE
    return Outcome.ACCEPT if listing.by_rule and listing.public else "not public"


def test_the_same_article_is_one_item_and_near_misses_are_apart(undisturbed: Undisturbed) -> None:
    """Listings of one article share one item, in the catalogue and in public; those of two never do (INV-02)."""
    products: dict[str, set[str]] = {}
    for true in TRUTH.listings:
        listing = undisturbed.listings[true.id]
        assert listing.public == listing.items
        products.setdefault(true.product, set()).update(listing.items)
    assert all(len(items) <= 1 for items in products.values()), products
    made = [item for items in products.values() for item in items]
    assert len(made) == len(set(made)) == len(undisturbed.state.items)
    pairs = undisturbed.figures.pairs
    assert pairs.same >= 50
    assert pairs.different >= 180
    assert (pairs.split_same, pairs.merged_near_misses) == (0, 0)


def test_every_accepted_fact_leads_back_to_its_bytes(undisturbed: Undisturbed) -> None:
    """INV-05: each revision's quotes stand in the stored bytes where their locators say."""
    assert undisturbed.figures.untraceable_facts == 0
    assert undisturbed.figures.positions > 180


def test_every_accepted_item_is_public_and_nothing_else(undisturbed: Undisturbed) -> None:
    """The policy releases what is accepted; an offer stands on its item's page once for each mapping."""
    state = undisturbed.state
    assert set(state.public) == set(state.items)
    offers = [
        (offer["url"], offer["merchant"]["name"], offer["title"], item)
        for item, page in state.public.items()
        for offer in page["offers"]
    ]
    assert sorted(offers) == sorted(
        (mapping["url"], mapping["merchant"], mapping["title"], mapping["item"])
        for mapping in state.mappings.values()
    )


def test_prices_are_those_of_the_pages(undisturbed: Undisturbed) -> None:
    """English and German pages state money in their own ways; the public catalogue means the same by it."""
    priced = {
        (shop.url(page.path), listing.seller): (listing.price, shop.currency)
        for shop in load_catalogue().shops
        for page in shop.allowed_pages()
        for listing in page.listings
        if len(page.listings) == len({one.seller for one in page.listings})
    }
    offers = [
        offer
        for page in undisturbed.state.public.values()
        for offer in page["offers"]
        if (offer["url"], offer["merchant"]["name"]) in priced
    ]
    assert len(offers) > 50
    for offer in offers:
        price = (Decimal(offer["price"]["amount"]), offer["price"]["currency"])
        assert price == priced[offer["url"], offer["merchant"]["name"]], offer


def test_nothing_is_missing_and_nothing_is_there_twice(undisturbed: Undisturbed) -> None:
    """I1, I3: positions 1 to the cursor without a gap in both databases; no listing or capture twice."""
    assert undisturbed.figures.faults == {}
    assert undisturbed.figures.submitted == undisturbed.figures.kept


# Walks that go another way to the same end


@pytest.mark.parametrize(
    "order",
    [SOURCES[::-1], ("src_bazaarline", "src_lumen", "src_halden")],
    ids=["reversed", "marketplace first"],
)
async def test_the_order_of_the_sources_changes_nothing(
    cluster: Cluster, tmp_path: Path, undisturbed: Undisturbed, order: tuple[str, ...]
) -> None:
    """Cases that waited for a key are identified again when it comes, and the rest is the same (state, "Identity")."""
    async with walking(cluster, tmp_path / "walk") as walk:
        for source in order:
            await walk.collect_all(source)
            await walk.at_rest()
        assert await end_state(walk) == undisturbed.state
        await assert_sound(walk)


async def test_pushing_a_local_spool_twice_changes_nothing(
    cluster: Cluster, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    """Local mode is the same walk with a pause in it; what has its receipt is not sent again."""
    async with walking(cluster, tmp_path / "walk") as walk:
        spooled = str(walk.layout.spool)
        assert await walk.collect("--local", spooled) == 0
        assert (await walk.at_rest()).resolver.captures == 0
        (first,) = (await walk.prw("collect", "push", spooled, "--json")).data
        pushed = await walk.at_rest()
        assert first["submitted"] == pushed.resolver.captures == undisturbed.figures.kept
        assert await end_state(walk) == undisturbed.state
        (second,) = (await walk.prw("collect", "push", spooled, "--json")).data
        assert (second["submitted"], second["refused"]) == (0, 0)
        assert await walk.at_rest() == pushed
        await assert_sound(walk)


async def test_a_push_that_forgot_its_receipts_changes_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A spool restored from a backup sends everything again: each capture has its former receipt."""
    async with walking(cluster, tmp_path / "walk") as walk:
        kept, copy = walk.layout.spool, tmp_path / "copy"
        await walk.collect("src_lumen", "--local", str(kept))
        shutil.copytree(kept, copy)
        await walk.prw("collect", "push", str(kept))
        pushed = await walk.at_rest()
        (again,) = (await walk.prw("collect", "push", str(copy), "--json")).data
        assert again["submitted"] == pushed.resolver.captures == pushed.resolver.submitted
        assert await walk.at_rest() == pushed
        await assert_sound(walk)


# What happens to a catalogue afterwards


async def test_collecting_again_deciding_and_a_new_price_reach_the_public_page(
    cluster: Cluster,
    tmp_path: Path,
    undisturbed: Undisturbed,
    street: Street,
    shopfronts: Doctored,
) -> None:
    """A second run changes nothing; then a person's decision and a new price change what they should, and no more."""
    async with walking(cluster, tmp_path / "walk", street) as walk:
        await walk.collect_all()
        first = await walk.at_rest()
        await walk.collect_all()
        assert await walk.at_rest() == first
        assert await end_state(walk) == undisturbed.state
        decided = await _decide_on_the_stale_part_number(walk, undisturbed.state)
        await _collect_another_price(walk, decided, shopfronts)
        await assert_sound(walk)


async def _decide_on_the_stale_part_number(walk: Walk, before: EndState) -> EndState:
    case, meant = await _case_of(walk, STALE), await _item_of(walk, MEANT)
    assert (STALE, MEANT) not in _shown_together(before)
    decide = (
        *("decide", case["case_id"], "accept", "--map-to", meant, "--rationale", "the photograph"),
        *("--revision", str(case["revision"])),
    )
    await walk.review(*decide)
    await walk.at_rest()
    after = await end_state(walk)
    assert (STALE, MEANT) in _shown_together(after)
    moved = set(after.mappings) - set(before.mappings)
    assert moved == set(before.cases) - set(after.cases)
    assert {after.mappings[listing]["url"] for listing in moved} == {STALE}
    assert set(after.items) == set(before.items)
    assert "STALE_CASE_REVISION" in await walk.refused(*walk.reviewing(*decide))
    return after


async def _case_of(walk: Walk, url: str) -> dict[str, Any]:
    listed = await walk.review("list")
    (asked,) = [case for case in listed if case["reason"] == "keys_of_two_items"]
    case = await walk.review("show", asked["case_id"])
    assert case["summary"]["listing_key"].startswith(f"{url}#")
    assert {one["attribute"] for one in case["evidence"]} >= {"core:gtin", "core:mpn"}
    return dict(case["summary"])


async def _item_of(walk: Walk, url: str) -> str:
    async with walk.books() as books:
        listings = await books.listings(await books.product_standing())
    (item,) = {item for one in listings if one.page == url for item in one.items}
    return item


def _shown_together(state: EndState) -> set[tuple[str, str]]:
    return {
        (a["url"], b["url"])
        for page in state.public.values()
        for a in page["offers"]
        for b in page["offers"]
    }


async def _collect_another_price(walk: Walk, before: EndState, shopfronts: Doctored) -> None:
    shopfronts.rewrite(PRICED, "89.90", "84.50")
    await walk.collect_all()
    await walk.at_rest()
    after = await end_state(walk)
    was, now = _offer(before, PRICED), _offer(after, PRICED)
    assert was.pop("price") == {"amount": "89.9", "currency": "USD"}
    assert now.pop("price") == {"amount": "84.5", "currency": "USD"}
    assert was == now
    assert (after.items, after.mappings, after.cases) == (
        before.items,
        before.mappings,
        before.cases,
    )
    assert set(after.public) == set(before.public)


def _offer(state: EndState, url: str) -> dict[str, Any]:
    offers = (offer for page in state.public.values() for offer in page["offers"])
    (offer,) = [offer for offer in offers if offer["url"] == url]
    return dict(offer)
