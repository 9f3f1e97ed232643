"""From a person's decision to the change that records it, and what a case compares: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from prw.errors import Code, PrwError
from prw_resolver.catalog.acceptance import Held
from prw_resolver.catalog.model import Item, MappingStatus
from prw_resolver.review.correct import correct
from prw_resolver.review.decide import Ground, Request, Ruling, rule
from prw_resolver.review.model import CaseStatus, compare, evidence_digest
from prw_resolver.stream.model import Action, Actor, ActorKind, AggregateType, Change
from prw_resolver.vocabulary import service as vocabulary_service
from prw_resolver.vocabulary.model import Basis, NormalisedRecord
from tests.resolver.catalogue import record, value
from tests.resolver.deciding import LATER, MERCHANT, case_of, item_of, mapping_of

VOCABULARY = vocabulary_service.read()
RULING = Ruling("decide:anna:key", "digest", Actor(ActorKind.PERSON, "anna"))
STATED: dict[str, Any] = {
    "core__gtin": "09520000000011",
    "core__brand": "strata",
    "core__mpn": "P5",
    "storage__capacity": "1000000000000",
    "offer__price": "99.90",
}
EVERYTHING = ["catalog_item", "merchant", "listing_mapping", "inventory_observation"]


def stated(**other: Any) -> NormalisedRecord:
    """A record that states everything, but for what the test says."""
    said = {key: text for key, text in (STATED | other).items() if text}
    return record(VOCABULARY, "a", **said)


def asked(action: Action, **other: Any) -> Request:
    """A decision as it was asked for."""
    return Request("case_1", 1, action, "because", "key", **other)


def ground(subject: NormalisedRecord, item: Item | None = None, **other: Any) -> Ground:
    """What the decision rests on: nothing is accepted yet, but for what the test says."""
    held: dict[str, Any] = {"owners": {}, "held": Held(), "vocabulary": VOCABULARY} | other
    return Ground(case=case_of(subject), record=subject, item=item, **held)


def kinds(change: Change) -> list[str]:
    """The aggregates that the change's facts are of, in order."""
    return [fact.type.value for fact in change.facts]


@pytest.mark.parametrize(
    ("action", "status", "outcome"),
    [
        (Action.REJECT, CaseStatus.DECIDED, "rejected"),
        (Action.DEFER, CaseStatus.DEFERRED, "in_review"),
        (Action.RETRACT, CaseStatus.DECIDED, "retraction"),
    ],
)
def test_what_a_decision_without_a_destination_does(
    action: Action, status: CaseStatus, outcome: str
) -> None:
    """No fact; the case moves from the revision that was seen (INV-04) and the record's outcome with it."""
    change = rule(asked(action), ground(stated()), RULING)
    assert kinds(change) == []
    assert change.case is not None
    assert (change.case.status, change.case.expected_revision) == (status, 1)
    assert [told.outcome for told in change.outcomes] == [outcome]
    assert change.decision is not None
    assert (change.decision.action, change.decision.case_revision) == (action, 1)
    assert change.answer["case_revision"] == 2


def test_a_deferred_case_waits_for_its_keys_and_a_decided_one_for_nothing() -> None:
    """Put off is still open."""
    deferred = rule(asked(Action.DEFER), ground(stated()), RULING)
    decided = rule(asked(Action.REJECT), ground(stated()), RULING)
    assert deferred.case is not None
    assert decided.case is not None
    assert len(deferred.case.waits_for) == 2
    assert decided.case.waits_for == ()


def test_a_new_item_comes_with_all_that_it_needs_in_the_order_of_dependencies() -> None:
    """Each fact has evidence (INV-05) and the decision quotes the case's."""
    subject = stated()
    change = rule(asked(Action.ACCEPT, create_item=True), ground(subject), RULING)
    assert kinds(change) == EVERYTHING
    assert all(fact.evidence and fact.revision == 1 for fact in change.facts)
    assert change.decision is not None
    assert change.decision.evidence == case_of(subject).evidence
    assert change.answer["event_ids"] == [fact.event_id for fact in change.facts]
    assert [lookup.item_id for lookup in change.lookups] == [None, None]


def test_a_new_item_needs_every_key_free() -> None:
    """KEY_TAKEN, and the message names the owner."""
    subject = stated()
    taken = ground(subject, owners={subject.keys[0].identity_hash: "itm_9"})
    with pytest.raises(PrwError, match="itm_9") as refused:
        rule(asked(Action.ACCEPT, create_item=True), taken, RULING)
    assert refused.value.code is Code.KEY_TAKEN


@pytest.mark.parametrize(
    ("other", "keys"), [({}, 1), ({"storage__capacity": "2"}, 0), ({"core__mpn": "P6"}, 0)]
)
def test_mapping_gives_free_keys_only_where_nothing_contradicts(
    other: dict[str, Any], keys: int
) -> None:
    """A stale part number must not become the item's key; the listing is mapped all the same."""
    subject = stated(**other)
    item = replace(item_of(stated()), revision=3)
    by_gtin = next(key for key in subject.keys if key.rule == "gtin")
    found = ground(subject, item, owners={by_gtin.identity_hash: item.item_id})
    change = rule(asked(Action.ACCEPT, map_to=item.item_id), found, RULING)
    new_keys = [
        fact.row["new_keys"] for fact in change.facts if fact.type is AggregateType.CATALOG_ITEM
    ]
    assert len(new_keys[0] if new_keys else ()) == keys  # type: ignore[arg-type]  # a row holds JSON
    assert "listing_mapping" in kinds(change)


@pytest.mark.parametrize("missing", ["class_id", "merchant"])
def test_what_has_no_class_or_merchant_cannot_be_accepted(missing: str) -> None:
    """VALIDATION_FAILED says what to correct."""
    subject = replace(stated(), **{missing: None})  # type: ignore[arg-type]  # a parameter names the field
    with pytest.raises(PrwError) as refused:
        rule(asked(Action.ACCEPT, create_item=True), ground(subject), RULING)
    assert (refused.value.code, refused.value.field) == (Code.VALIDATION_FAILED, "corrections")


def test_retracting_takes_the_mapping_as_it_stands() -> None:
    """Its next revision is retracted; it depends on the merchant's revision as it is now."""
    subject = stated()
    mapping = mapping_of(subject, item_of(subject), revision=4)
    held = Held(mapping, replace(MERCHANT, revision=2))
    change = rule(asked(Action.RETRACT), ground(subject, held=held), RULING)
    (fact,) = change.facts
    assert (fact.revision, fact.row["status"]) == (5, MappingStatus.RETRACTED.value)
    assert [needed.revision for needed in fact.dependencies] == [1, 2]
    assert fact.evidence == case_of(subject).evidence


def test_the_same_request_has_the_same_digest() -> None:
    """Whatever differs in what was asked for differs in it; the key and the person do not."""
    first = asked(Action.ACCEPT, create_item=True)
    assert replace(first, idempotency_key="other").digest() == first.digest()
    others: list[dict[str, Any]] = [
        {"case_id": "case_2"},
        {"expected_revision": 2},
        {"action": Action.CORRECT},
        {"rationale": "otherwise"},
        {"corrections": {"core:mpn": "X"}},
        {"create_item": False},
        {"map_to": "itm_1"},
    ]
    digests = {replace(first, **other).digest() for other in others}
    assert len(digests | {first.digest()}) == len(others) + 1


def test_a_correction_is_read_like_a_page_and_makes_the_keys_anew() -> None:
    """It takes the place of what was stated or ambiguous, and says that a person wrote it."""
    subject = replace(stated(core__gtin=""), ambiguous=("storage:capacity", "core:image"))
    corrections = {
        "core:gtin": "9520000000011",
        "storage:capacity": "2 TB",
        "offer:seller": "Orbit",
    }
    made = correct(subject, corrections, VOCABULARY)
    assert made.ambiguous == ("core:image",)
    gtin, capacity = made.value("core:gtin"), made.value("storage:capacity")
    assert gtin is not None
    assert (gtin.value, gtin.basis, gtin.quote) == ("09520000000011", Basis.CORRECTED, None)
    assert capacity is not None
    assert (capacity.value, capacity.unit) == ("2000000000000", "By")
    assert made.merchant is not None
    assert (made.merchant.value, made.value("offer:seller")) == ("Orbit", None)
    assert [key.rule for key in made.keys] == ["gtin", "brand_mpn"]
    assert correct(subject, {}, VOCABULARY) is subject


def test_a_corrected_merchant_rests_on_the_cases_evidence() -> None:
    """A fact that only a person's word made has no quote of its own (INV-05)."""
    subject = correct(stated(), {"offer:seller": "Orbit"}, VOCABULARY)
    change = rule(asked(Action.CORRECT, create_item=True), ground(subject), RULING)
    merchant = next(fact for fact in change.facts if fact.type is AggregateType.MERCHANT)
    assert merchant.row["name"] == "Orbit"
    assert merchant.evidence


def test_the_evidence_of_a_question_is_what_is_stated_not_where_or_for_how_much() -> None:
    """Price and availability are no part of it; class, values, ambiguity and merchant are."""
    subject = stated()
    same = (
        replace(subject, observed_at=LATER, capture_id="cap_2", title="another"),
        replace(subject, values=tuple(reversed(subject.values))),
        stated(offer__price="1.00", offer__availability="in_stock"),
    )
    other = (
        stated(core__mpn="X"),
        replace(subject, class_id="storage_drive"),
        replace(subject, ambiguous=("core:image",)),
        replace(subject, merchant=value("offer:seller", "Orbit")),
        replace(subject, merchant=None),
    )
    assert {evidence_digest(held) for held in same} == {evidence_digest(subject)}
    digests = {evidence_digest(held) for held in other}
    assert len(digests) == len(other)
    assert evidence_digest(subject) not in digests


def test_a_candidate_is_compared_over_whatever_can_contradict() -> None:
    """The unit counts too; what does not apply to the item's class, or contradicts nothing, is not looked at."""
    item = item_of(stated(storage__heatsink="true"))
    subject = stated(storage__capacity="5", core__sku="S", storage__interface="NVMe")
    held = compare(subject, item, VOCABULARY)
    assert held.disagree == ("storage:capacity",)
    assert held.missing == ("storage:heatsink",)
    assert set(held.agree) == {
        "core:gtin",
        "core:mpn",
        "core:brand",
        "core:condition",
        "core:pack_quantity",
    }
    assert held.score == "0.83"
    odd = replace(
        stated(),
        values=tuple(
            replace(one, unit="GBy") if one.attribute == "storage:capacity" else one
            for one in stated().values
        ),
    )
    assert compare(odd, item, VOCABULARY).disagree == ("storage:capacity",)
    thing = replace(item, class_id="thing")
    assert "storage:capacity" not in compare(subject, thing, VOCABULARY).disagree
