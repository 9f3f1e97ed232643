"""From an accepted record to its facts: what is new becomes a fact, what is known does not. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from prw_resolver.catalog.acceptance import Held, accept_record, observe_record, record_merchant_id
from prw_resolver.catalog.model import Item, MappingStatus, listing_id, merchant_id, release_id
from prw_resolver.stream.encode import encode_event
from prw_resolver.stream.model import AggregateType, Fact, Stream
from prw_resolver.vocabulary import service as vocabulary_service
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import record
from tests.resolver.deciding import LATER, MERCHANT, item_of, mapping_of, observation_of

VOCABULARY = vocabulary_service.read()
STATED: dict[str, Any] = {
    "core__gtin": "09520000000011",
    "storage__capacity": "1000000000000",
    "storage__interface": "NVMe",
    "core__sku": "LP-1",
    "offer__price": "99.90",
    "offer__availability": "in_stock",
}


def stated(**other: Any) -> NormalisedRecord:
    """A record that states everything, but for what the test says."""
    said = {key: text for key, text in (STATED | other).items() if text}
    return record(VOCABULARY, "a", **said)


def accept(subject: NormalisedRecord, item: Item | None, held: Held) -> tuple[Fact, ...]:
    """The facts of a record that brings no new key to a known item, and all its keys to a new one."""
    keys = subject.keys if item is None else ()
    return accept_record(subject, item, keys, held, VOCABULARY)


def everything(subject: NormalisedRecord) -> tuple[Item, Held]:
    """The record as it stands once it is accepted."""
    item = item_of(stated(core__sku=""))
    return item, Held(mapping_of(subject, item), MERCHANT, observation_of(subject))


def fact(facts: tuple[Fact, ...], kind: AggregateType) -> Fact:
    """The one fact of that kind."""
    (found,) = [one for one in facts if one.type is kind]
    return found


def test_what_an_item_is_comes_from_its_class_not_from_the_shop() -> None:
    """Attributes of the class, and those that tell items apart; never the shop's number, title, price or seller."""
    made = fact(accept(stated(), None, Held()), AggregateType.CATALOG_ITEM)
    attributes: Any = made.row["new_attributes"]
    assert {one["key"]: one["basis"] for one in attributes} == {
        "core:gtin": "stated",
        "core:condition": "default",
        "core:pack_quantity": "default",
        "storage:capacity": "stated",
        "storage:interface": "stated",
    }


def test_what_is_accepted_already_is_no_fact() -> None:
    """The same record again, seen later, changes the observation alone; seen at the same time, nothing."""
    subject = stated()
    item, held = everything(subject)
    assert accept(subject, item, held) == ()
    later = replace(subject, observed_at=LATER)
    (only,) = accept(later, item, held)
    assert (only.type, only.revision) == (AggregateType.INVENTORY_OBSERVATION, 2)
    assert observe_record(later, mapping_of(subject, item), held) != ()


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"title": "another"}, {"listing_mapping"}),
        ({"url": "https://shop.example/moved"}, {"listing_mapping"}),
    ],
)
def test_a_new_face_is_a_new_revision_of_the_mapping(
    change: dict[str, Any], kinds: set[str]
) -> None:
    """The item stays as it is."""
    subject = stated()
    item, held = everything(subject)
    facts = accept(replace(subject, **change), item, held)
    assert {one.type.value for one in facts} == kinds
    assert fact(facts, AggregateType.LISTING_MAPPING).revision == 2


def test_a_retracted_listing_that_is_accepted_again_is_a_fact() -> None:
    """Its mapping is active under the next revision."""
    subject = stated()
    item, held = everything(subject)
    gone = mapping_of(subject, item, status=MappingStatus.RETRACTED, revision=5)
    made = fact(accept(subject, item, replace(held, mapping=gone)), AggregateType.LISTING_MAPPING)
    assert (made.revision, made.row["status"]) == (6, "active")


def test_an_item_learns_what_it_lacks_in_any_order() -> None:
    """Of two wordings of a descriptive attribute the lesser one stays, whichever came first."""
    words = ("PCIe 4.0", "NVMe", "pcie")
    ends = set()
    for order in permutations(words):
        item = item_of(stated(storage__interface="", core__sku=""))
        for word in order:
            facts = accept(stated(storage__interface=word), item, Held())
            learnt = [one for one in facts if one.type is AggregateType.CATALOG_ITEM]
            for one in learnt:
                new: Any = one.row["new_attributes"]
                item = item_of(stated(storage__interface=new[0]["value"], core__sku=""))
        held = item.attribute("storage:interface")
        assert held is not None
        ends.add(held.value)
    assert ends == {"NVMe"}


def test_a_listing_that_contradicts_its_item_teaches_it_nothing_but_what_it_lacks() -> None:
    """A person may map it: the item stays what it is, or its other listings would contradict it."""
    subject = stated(core__gtin="00000000000017", storage__capacity="1", storage__heatsink="true")
    made = fact(accept(subject, item_of(stated()), Held()), AggregateType.CATALOG_ITEM)
    new: Any = made.row["new_attributes"]
    assert [one["key"] for one in new] == ["storage:heatsink"]


def test_a_price_needs_its_own_words_and_a_later_look() -> None:
    """Without price and availability there is no observation; an older one changes nothing (replay rule 8)."""
    silent = stated(offer__price="", offer__availability="")
    kinds = {one.type for one in accept(silent, None, Held())}
    assert AggregateType.INVENTORY_OBSERVATION not in kinds
    subject = stated()
    seen = observation_of(subject, observed_at=LATER)
    facts = accept(subject, None, Held(observation=seen))
    assert AggregateType.INVENTORY_OBSERVATION not in {one.type for one in facts}


@pytest.mark.parametrize(
    "word", ["in_stock", "out_of_stock", "preorder", "backorder", "discontinued", "in_store_only"]
)
def test_every_word_for_availability_can_be_told(word: str) -> None:
    """Each of the vocabulary's words makes an event that readers can decode."""
    facts = accept(stated(offer__availability=word), None, Held())
    for one in facts:
        assert encode_event(Stream("t", "c", 1), one)


def test_a_record_without_a_merchant_makes_no_facts() -> None:
    """Replay rule 15: who sells is stated, never assumed."""
    with pytest.raises(ValueError, match="merchant"):
        accept(replace(stated(), merchant=None), None, Held())


def test_ids_are_told_from_what_they_stand_for() -> None:
    """The same listing and merchant have the same id for ever, and no two things share one."""
    assert listing_id("t", "c", "s", "k") == listing_id("t", "c", "s", "k")
    ids = {
        listing_id("t", "c", "s", "k"),
        listing_id("t", "c", "sk", ""),
        listing_id("t2", "c", "s", "k"),
        release_id("t", "c", "s"),
    }
    assert len(ids) == 4
    assert merchant_id("t", "c", "s", "Orbit  Deals ") == merchant_id("t", "c", "s", "orbit deals")
    assert record_merchant_id(replace(stated(), merchant=None)) is None
