"""The order of arrival changes nothing in the end, and near misses never merge: state.md, "Identity"."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path

import pytest

from prw_resolver.review.decide import Request
from prw_resolver.stream.model import Action
from tests.resolver.arrivals import Settled, Shown, Way, arrive, drain, identify, salted, settled
from tests.resolver.catalogue import SCOPE, rooms
from tests.support.invariants import assert_stream_holds

TB, TWO_TB = "1000000000000", "2000000000000"
PLAIN = {
    "core:gtin": "G1",
    "core:brand": "strata",
    "core:mpn": "P5",
    "storage:capacity": TB,
    "storage:heatsink": "false",
}
HEATSINK = PLAIN | {"core:gtin": "G2", "core:mpn": "P5HS", "storage:heatsink": "true"}
LARGER = PLAIN | {"core:gtin": "G3", "core:mpn": "P5L", "storage:capacity": TWO_TB}


def only(product: dict[str, str], *keys: str, **other: str) -> dict[str, str]:
    """What a page states that states no more than this."""
    stated = {key: product[key] for key in keys}
    return stated | {key.replace("__", ":"): text for key, text in other.items()}


MPN = ("core:brand", "core:mpn")

STALE_PART_NUMBER = (
    Shown("heatsink", True, HEATSINK),
    Shown("plain", True, PLAIN),
    Shown("stale", False, only(HEATSINK, "core:gtin", core__brand="strata", core__mpn="P5")),
    Shown("heatsink-gtin", False, only(HEATSINK, "core:gtin")),
    Shown("plain-mpn", False, only(PLAIN, *MPN)),
)
CAPACITY = (
    Shown("one", True, PLAIN),
    Shown("two", True, LARGER),
    Shown("wrong", False, only(PLAIN, "core:gtin", storage__capacity=TWO_TB)),
    Shown("two-again", False, only(LARGER, *MPN, "storage:capacity")),
)
PACK_AND_CONDITION = (
    Shown("single", True, PLAIN),
    Shown("bundle", True, PLAIN | {"core:pack_quantity": "2"}),
    Shown("refurbished", False, PLAIN | {"core:condition": "refurbished"}),
    Shown("bundle-again", False, only(PLAIN, "core:gtin", core__pack_quantity="2")),
)
CHAIN = (
    Shown("shop", True, only(PLAIN, "core:gtin")),
    Shown("tie", False, only(PLAIN, "core:gtin", *MPN)),
    Shown("tied", False, only(PLAIN, *MPN)),
    Shown("stranger", False, only(LARGER, "core:gtin")),
)


def ends(*items: set[str], cases: dict[str, str] | None = None) -> Settled:
    """How a set ends."""
    return Settled(frozenset(map(frozenset, items)), frozenset((cases or {}).items()))


@pytest.mark.parametrize(
    ("shown", "end"),
    [
        pytest.param(
            STALE_PART_NUMBER,
            ends(
                {"heatsink", "heatsink-gtin"},
                {"plain", "plain-mpn"},
                cases={"stale": "keys_of_two_items"},
            ),
            id="stale part number, with and without heatsink",
        ),
        pytest.param(
            CAPACITY,
            ends({"one"}, {"two", "two-again"}, cases={"wrong": "contradiction:storage:capacity"}),
            id="capacity",
        ),
        pytest.param(
            PACK_AND_CONDITION,
            ends(
                {"single"}, {"bundle", "bundle-again"}, cases={"refurbished": "untrusted_new_key"}
            ),
            id="pack and condition",
        ),
        pytest.param(
            CHAIN,
            ends({"shop", "tie", "tied"}, cases={"stranger": "untrusted_new_key"}),
            id="a key that an untrusted source ties",
        ),
    ],
)
async def test_every_order_ends_alike(
    resolver_database: dict[str, str], tmp_path: Path, shown: tuple[Shown, ...], end: Settled
) -> None:
    """All orders, with cases identified again at the end, in between, or by two identifiers at once.

    Seen to fail without the contradiction of another GTIN, and with a case that does not wait for its keys.
    """
    async with rooms(resolver_database["resolver_app"], tmp_path) as held:
        for number, order in enumerate(permutations(shown)):
            way = Way(number % len(Way))
            await arrive(held, order, str(number), way)
            names = [one.name for one in order]
            assert settled(resolver_database["superuser"], str(number)) == end, (names, way)
    assert_stream_holds(resolver_database["superuser"])


PRODUCTS = (PLAIN, HEATSINK, LARGER, HEATSINK | {"core:condition": "used"})


def street(seed: int) -> list[Shown]:
    """A few products, most introduced by a shop that states everything, and a market that gets things wrong."""
    draw = random.Random(seed)
    shown = [
        Shown(f"shop{number}", True, product)
        for number, product in enumerate(PRODUCTS)
        if draw.random() < 0.8
    ]
    for number in range(4):
        product, other = draw.sample(PRODUCTS, 2)
        keys = draw.choice((("core:gtin",), MPN, ("core:gtin", *MPN), tuple(product)))
        stated = only(product, *keys)
        wrong = draw.choice(sorted(stated))
        if draw.random() < 0.4 and wrong in other:
            stated[wrong] = other[wrong]
        shown.append(Shown(f"market{number}", False, stated))
    return shown


async def test_any_street_ends_alike_in_any_order(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """Two shuffles of one street end in the same items and the same open questions; shops never share an item."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as held:
        for seed in range(40):
            shown, draw = street(seed), random.Random(-seed)
            found = []
            for turn in range(2):
                order, salt = draw.sample(shown, len(shown)), f"{seed}-{turn}"
                await arrive(held, order, salt, draw.choice(list(Way)))
                found.append(settled(resolver_database["superuser"], salt))
            assert found[0] == found[1], seed
            for listings in found[0].items:
                assert sum(name.startswith("shop") for name in listings) == 1, (seed, listings)
    assert_stream_holds(resolver_database["superuser"])


async def test_a_deferred_case_still_waits_for_its_key(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """Put off is not decided: when the key becomes active the case is identified again."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as held:
        market = Shown("market", False, only(PLAIN, "core:gtin"))
        await arrive(held, [market], "0", Way.AT_THE_END)
        (case,) = await held.review.cases(SCOPE)
        await held.review.decide(
            SCOPE, "anna", Request(case.case_id, case.revision, Action.DEFER, "later", "key-1")
        )
        await identify(held.identifier, held, salted(held, Shown("shop", True, PLAIN), "0"))
        await drain(held)
        (case,) = await held.review.cases(SCOPE)
        assert case.status == "superseded"
    assert settled(resolver_database["superuser"], "0") == ends({"market", "shop"})
