"""What is public comes from applied releases alone (if_product_query)."""

from __future__ import annotations

import itertools

import pytest

from prw.changes.v1 import change_pb2 as pb
from prw_product.apply.service import Applier
from prw_product.serve.model import ItemQuery
from prw_product.serve.service import Catalogue
from tests.product import looking
from tests.product.events import (
    change,
    deliveries,
    history,
    item,
    mapping,
    merchant,
    price,
    release,
)


async def _public(catalogue: Catalogue) -> dict[str, list[str]]:
    page = await catalogue.list_items(ItemQuery())
    return {i.item_id: [offer.title for offer in i.offers] for i in page.items}


async def test_nothing_is_public_before_its_release(applier: Applier, catalogue: Catalogue) -> None:
    """Internal acceptance publishes nothing: an item and a mapping alone are private."""
    await applier.apply(deliveries(history(item("itm_1"), mapping("lst_1", "itm_1"))))
    assert await _public(catalogue) == {}
    assert (await catalogue.list_merchants(0, "")).merchants == ()


async def test_a_remap_stays_private_until_a_release_is_applied(
    applier: Applier, catalogue: Catalogue
) -> None:
    """The public owner and the public words are those of the released mapping revision."""
    made = history(
        item("itm_1"),
        item("itm_2"),
        mapping("lst_1", "itm_1", title="as released"),
        release("itm_1", {"lst_1": 1}),
        mapping("lst_1", "itm_2", revision=2, title="as remapped"),
        release("itm_2", {"lst_1": 2}),
        release("itm_1", {}, revision=2),
    )
    await applier.apply(deliveries(made[:5]))
    assert await _public(catalogue) == {"itm_1": ["as released"]}
    await applier.apply(deliveries(made[5:6]))
    assert await _public(catalogue) == {"itm_1": [], "itm_2": ["as remapped"]}
    await applier.apply(deliveries(made[6:]))
    assert await _public(catalogue) == {"itm_1": [], "itm_2": ["as remapped"]}


async def test_a_listing_never_goes_back_to_whose_it_was(
    applier: Applier, catalogue: Catalogue
) -> None:
    """Released under another item and dropped there, it is gone, though the first still names it."""
    gone = mapping("lst_1", "itm_2", revision=3)
    gone.listing_mapping.status = pb.MAPPING_STATUS_RETRACTED
    made = [*_REMAP, change(7, gone), change(8, release("itm_2", {}, revision=2))]
    await applier.apply(deliveries([*made[:5], *made[6:]]))
    assert await _public(catalogue) == {"itm_1": ["old"], "itm_2": []}
    await applier.apply(deliveries([made[5]]))
    assert await _public(catalogue) == {"itm_1": [], "itm_2": []}


_REMAP = history(
    item("itm_1"),
    item("itm_2"),
    mapping("lst_1", "itm_1", title="old"),
    release("itm_1", {"lst_1": 1}),
    mapping("lst_1", "itm_2", revision=2, title="new"),
    release("itm_2", {"lst_1": 2}),
)


@pytest.mark.parametrize("order", list(itertools.permutations(range(2, 6)))[::4])
async def test_each_listing_has_one_owner_whatever_the_order(
    applier: Applier, catalogue: Catalogue, order: tuple[int, ...]
) -> None:
    """Two releases that name one listing: the greater mapping revision owns it in every order."""
    await applier.apply(deliveries(_REMAP[:2]))
    for at in order:
        await applier.apply(deliveries([_REMAP[at]]))
    assert await _public(catalogue) == {"itm_1": [], "itm_2": ["new"]}


async def test_a_release_shows_a_mapping_that_was_overtaken_before_it_came(
    applier: Applier, catalogue: Catalogue, product_database: dict[str, str]
) -> None:
    """Revision 1 arrives after 2 and is stale, yet it is the state that the release names."""
    made = history(
        item("itm_1"),
        mapping("lst_1", "itm_1", title="released"),
        release("itm_1", {"lst_1": 1}),
        mapping("lst_1", "itm_1", revision=2, title="newer"),
    )
    for at in (0, 3, 2):
        await applier.apply(deliveries([made[at]]))
    assert looking.parked(product_database["superuser"]) == [3]
    assert (await applier.apply(deliveries([made[1]]))).progress == 4
    assert await _public(catalogue) == {"itm_1": ["released"]}
    assert looking.outcomes(product_database["superuser"])[2] == "stale"


async def test_a_retracted_mapping_is_not_public(applier: Applier, catalogue: Catalogue) -> None:
    """A release cannot make a listing public at a revision that says that it is gone."""
    gone = mapping("lst_1", "itm_1")
    gone.listing_mapping.status = pb.MAPPING_STATUS_RETRACTED
    made = history(item("itm_1"), gone, release("itm_1", {"lst_1": 1}))
    assert (await applier.apply(deliveries(made))).progress == 3
    assert await _public(catalogue) == {"itm_1": []}


async def test_price_and_name_are_the_newest_applied(
    applier: Applier, catalogue: Catalogue
) -> None:
    """What is observed of a released listing needs no release of its own."""
    made = history(
        merchant(),
        item("itm_1"),
        mapping("lst_1", "itm_1"),
        release("itm_1", {"lst_1": 1}),
        price("lst_1", "129.90"),
        price("lst_1", "119.00", revision=2),
        merchant(stated="Lumen", revision=2),
    )
    await applier.apply(deliveries(made))
    (offer,) = (await catalogue.get_item("itm_1")).offers
    assert (offer.price_amount, offer.price_currency) == ("119.00", "EUR")
    assert (offer.availability, offer.merchant.name) == ("in_stock", "Lumen")
