"""Identity by rule, as pure functions of a record and what is known: state.md, "Identity", rule by rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from prw_resolver.catalog.acceptance import Held
from prw_resolver.catalog.model import ItemStatus, MappingStatus
from prw_resolver.identity.change import Command, build
from prw_resolver.identity.model import (
    Accept,
    Keep,
    Late,
    Refuse,
    Verdict,
    decide,
    is_same_question,
)
from prw_resolver.review.model import CaseKind, CaseStatus, Question
from prw_resolver.stream.model import Action, ActorKind
from prw_resolver.vocabulary import service as vocabulary_service
from prw_resolver.vocabulary.model import Basis, NormalisedRecord, Value
from tests.resolver.catalogue import NOON, record, value
from tests.resolver.deciding import (
    LATER,
    MERCHANT,
    case_of,
    item_of,
    known,
    mapping_of,
    observation_of,
    settled_on,
)

VOCABULARY = vocabulary_service.read()
GTIN, OTHER_GTIN = "09520000000011", "09520000000028"
FULL = {
    "core__gtin": GTIN,
    "core__brand": "strata",
    "core__mpn": "P5",
    "storage__capacity": "1000000000000",
    "storage__heatsink": "false",
}


def stated(**other: str) -> NormalisedRecord:
    """A record that states everything, but for what the test says."""
    said: dict[str, Any] = {key: text for key, text in (FULL | other).items() if text}
    return record(VOCABULARY, "a", **said)


def asked(verdict: Verdict) -> tuple[CaseKind, str]:
    """The question that the verdict is."""
    assert isinstance(verdict, Question), verdict
    return verdict.kind, verdict.reason


def test_a_record_of_one_items_keys_is_that_item() -> None:
    """Every key is owned by one and the same active item, and nothing contradicts it."""
    subject = stated()
    item = item_of(subject)
    assert decide(subject, known(VOCABULARY, (subject, item))) == Accept(item, ())


def test_the_keys_that_nobody_owns_are_added_to_the_item_of_the_others() -> None:
    """One key is owned, the others by none: they become the item's."""
    introduced = stated(core__mpn="", core__brand="")
    subject = stated()
    item = item_of(introduced)
    verdict = decide(subject, known(VOCABULARY, (introduced, item), trusted=False))
    assert isinstance(verdict, Accept)
    assert verdict.item == item
    assert [key.rule for key in verdict.new_keys] == ["brand_mpn"]


def test_keys_of_two_items_are_a_conflict_with_both_as_candidates() -> None:
    """A stale part number hits the item of its GTIN and the item of its MPN."""
    by_gtin, by_mpn = stated(core__mpn="", core__brand=""), stated(core__gtin="")
    first, second = item_of(by_gtin, "itm_1"), item_of(by_mpn, "itm_2")
    verdict = decide(stated(), known(VOCABULARY, (by_gtin, first), (by_mpn, second)))
    assert asked(verdict) == (CaseKind.CONFLICT, "keys_of_two_items")
    assert isinstance(verdict, Question)
    assert {candidate.item_id for candidate in verdict.candidates} == {"itm_1", "itm_2"}


@pytest.mark.parametrize("trusted", [True, False])
def test_a_new_key_makes_an_item_only_from_a_source_that_may_introduce_items(trusted: bool) -> None:
    """From any other source it is a case that waits for the key."""
    verdict = decide(stated(), known(VOCABULARY, trusted=trusted))
    if trusted:
        assert verdict == Accept(None, stated().keys)
    else:
        assert asked(verdict) == (CaseKind.IDENTITY_MAPPING, "untrusted_new_key")


@pytest.mark.parametrize(
    ("attribute", "text", "shared"),
    [
        ("core:gtin", OTHER_GTIN, "brand_mpn"),
        ("core:mpn", "P5HS", "gtin"),
        ("core:brand", "kestrel", "gtin"),
        ("storage:capacity", "2000000000000", "gtin"),
        ("storage:heatsink", "true", "gtin"),
    ],
)
def test_a_contradiction_is_a_case_even_where_a_strong_identifier_agrees(
    attribute: str, text: str, shared: str
) -> None:
    """GTIN and MPN narrow the candidates and never bypass the key; another GTIN is another trade item (GS1)."""
    introduced, subject = stated(), stated(**{attribute.replace(":", "__"): text})
    item = item_of(introduced)
    owners = {key.identity_hash: "itm_1" for key in introduced.keys}
    verdict = decide(subject, known(VOCABULARY, (introduced, item), owners=owners))
    assert any(key.rule == shared and key.identity_hash in owners for key in subject.keys)
    assert asked(verdict) == (CaseKind.CONFLICT, f"contradiction:{attribute}")


@pytest.mark.parametrize(
    ("attribute", "text"), [("core__condition", "refurbished"), ("core__pack_quantity", "2")]
)
def test_another_condition_or_pack_is_another_key(attribute: str, text: str) -> None:
    """A refurbished one, or a bundle of two, shares no key with the new single one."""
    introduced, subject = stated(), stated(**{attribute: text})
    assert not {key.identity_hash for key in introduced.keys} & {
        key.identity_hash for key in subject.keys
    }
    verdict = decide(subject, known(VOCABULARY, (introduced, item_of(introduced))))
    assert verdict == Accept(None, subject.keys)


def test_a_default_is_held_against_what_the_item_states() -> None:
    """The published default is part of the record: it contradicts an item that is accepted as something else."""
    subject = stated()
    used = item_of(stated(core__condition="used"))
    verdict = decide(subject, known(VOCABULARY, (subject, used)))
    assert asked(verdict) == (CaseKind.CONFLICT, "contradiction:core:condition")


def test_what_only_one_side_states_contradicts_nothing() -> None:
    """A blank never disagrees, as it never agrees."""
    introduced, subject = stated(storage__heatsink=""), stated(storage__capacity="")
    item = item_of(introduced)
    assert decide(subject, known(VOCABULARY, (introduced, item))) == Accept(item, ())


def test_a_blank_never_matches_a_blank() -> None:
    """A record without an identifier has no key and is never accepted by rule."""
    subject = stated(core__gtin="", core__mpn="")
    assert subject.keys == ()
    assert asked(decide(subject, known(VOCABULARY)))[1] == "no_identity_key"
    empty = make_blank(subject)
    assert empty.keys == ()


def make_blank(subject: NormalisedRecord) -> NormalisedRecord:
    """The record with an empty GTIN."""
    return record(VOCABULARY, "blank", core__gtin="", core__brand="", core__mpn="")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"class_id": None}, "unknown_class"),
        ({"merchant": None}, "no_merchant"),
        ({"ambiguous": ("core:mpn",)}, "ambiguous:core:mpn"),
    ],
)
def test_what_no_rule_may_look_at_is_a_case(change: dict[str, object], reason: str) -> None:
    """Without class or merchant, or with an attribute stated twice, only a person decides."""
    subject = replace(stated(), **change)  # type: ignore[arg-type]  # the parameters name the fields
    verdict = decide(subject, known(VOCABULARY, (subject, item_of(subject))))
    assert asked(verdict) == (CaseKind.IDENTITY_MAPPING, reason)


def test_a_key_that_rests_on_a_hint_is_a_question() -> None:
    """A title that speaks of two pieces is enough to doubt the default, and too little to decide by."""
    subject = stated(core__pack_quantity="2")
    hinted = with_basis(subject, "core:pack_quantity", Basis.HINT)
    verdict = decide(hinted, known(VOCABULARY, (subject, item_of(subject))))
    assert asked(verdict) == (CaseKind.IDENTITY_MAPPING, "hinted:core:pack_quantity")
    assert isinstance(verdict, Question)
    assert [held.item_id for held in verdict.candidates] == [item_of(subject).item_id]


def test_a_hint_of_what_makes_no_key_decides_nothing() -> None:
    """A capacity that only the title states does not keep a rule from accepting."""
    subject = stated(storage__capacity="1000000000000")
    hinted = with_basis(subject, "storage:capacity", Basis.HINT)
    assert isinstance(decide(hinted, known(VOCABULARY, (subject, item_of(subject)))), Accept)


def with_basis(subject: NormalisedRecord, attribute: str, basis: Basis) -> NormalisedRecord:
    """The record with that value resting on something else."""
    values = tuple(
        replace(held, basis=basis) if held.attribute == attribute else held
        for held in subject.values
    )
    return replace(subject, values=values)


@pytest.mark.parametrize("where", ["value", "merchant"])
def test_what_a_model_claimed_is_never_accepted_by_rule(where: str) -> None:
    """Every claim used has the origin adapter, the merchant's too."""
    subject = stated()
    if where == "value":
        guessed = value("storage:form_factor", "M.2", origin="model")
        subject = replace(subject, values=(*subject.values, guessed))
    else:
        subject = replace(subject, merchant=value("offer:seller", "Lumen Parts", origin="model"))
    verdict = decide(subject, known(VOCABULARY, (subject, item_of(subject))))
    assert asked(verdict) == (CaseKind.IDENTITY_MAPPING, "model_origin")


@pytest.mark.parametrize("status", [ItemStatus.SPLIT, ItemStatus.MERGED, ItemStatus.RETIRED])
def test_only_an_active_item_takes_a_listing(status: ItemStatus) -> None:
    """INV-01."""
    subject = stated()
    item = item_of(subject, status=status)
    verdict = decide(subject, known(VOCABULARY, (subject, item)))
    assert asked(verdict) == (CaseKind.IDENTITY_MAPPING, "item_not_active")


def test_a_listing_that_now_states_another_items_keys_is_a_conflict() -> None:
    """A mapping is never moved by rule."""
    subject, former = stated(), item_of(stated(core__gtin=OTHER_GTIN, core__mpn="X"), "itm_0")
    held = known(VOCABULARY, (subject, item_of(subject)), mapping=mapping_of(subject, former))
    assert asked(decide(subject, held)) == (CaseKind.CONFLICT, "other_item_than_mapped")


def test_a_listing_whose_keys_all_changed_is_a_conflict() -> None:
    """Nobody owns its new keys, but it is mapped: a new item is not made under its feet."""
    subject = stated()
    former = item_of(stated(core__gtin=OTHER_GTIN, core__mpn="X"), "itm_0")
    held = known(VOCABULARY, mapping=mapping_of(subject, former), items={"itm_0": former})
    assert asked(decide(subject, held)) == (CaseKind.CONFLICT, "keys_changed")


def test_a_late_capture_is_history() -> None:
    """Replay rule 8: what is known already was observed later, whether accepted, seen, asked or settled."""
    subject = stated()
    item = item_of(subject)
    settled = replace(settled_on(subject, Action.REJECT), observed_at=LATER)
    newer = (
        {"mapping": mapping_of(subject, item, observed_at=LATER)},
        {"observation": observation_of(subject, observed_at=LATER)},
        {"case": case_of(subject, observed_at=LATER)},
        {"settled": settled},
    )
    for known_later in newer:
        held = known(VOCABULARY, (subject, item), **known_later)
        assert decide(subject, held) == Late(), known_later
        assert decide(replace(subject, observed_at=LATER), held) != Late(), known_later


def test_a_settled_question_is_not_asked_again_unless_its_evidence_changed() -> None:
    """A person's last word stands for the same evidence, whatever the rules would say."""
    subject = stated()
    other = item_of(stated(core__gtin=OTHER_GTIN), "itm_0")
    mapped = mapping_of(subject, other)
    keep = known(VOCABULARY, mapping=mapped, settled=settled_on(subject, Action.ACCEPT))
    assert decide(subject, keep) == Keep()
    assert decide(subject, replace(keep, settled=settled_on(subject, Action.CORRECT))) == Keep()
    rejected = known(VOCABULARY, settled=settled_on(subject, Action.REJECT))
    assert decide(subject, rejected) == Refuse()
    changed = stated(storage__capacity="2000000000000")
    assert isinstance(decide(changed, rejected), Accept)
    cheaper = replace(subject, values=(*subject.values, value("offer:price", "1.00")))
    assert decide(cheaper, rejected) == Refuse()


def test_a_settled_listing_that_was_retracted_is_decided_again() -> None:
    """What was gone and came back is looked at by the rules."""
    subject = stated()
    item = item_of(subject)
    gone = mapping_of(subject, item, status=MappingStatus.RETRACTED)
    held = known(
        VOCABULARY, (subject, item), mapping=gone, settled=settled_on(subject, Action.ACCEPT)
    )
    assert decide(subject, held) == Accept(item, ())


def test_a_rules_decision_quotes_adapters_only_even_where_a_person_settled_a_models_claim() -> None:
    """A price that a model read is not taken over by rule, and the decision's evidence leaves its claims out."""
    price = value("offer:price", "99.90", origin="model")
    stock = value("offer:availability", "in_stock")
    guessed = value("storage:form_factor", "M.2", origin="model")
    subject = replace(stated(), values=(*stated().values, guessed, price))
    item = item_of(subject)
    mapped = mapping_of(subject, item)
    held = known(
        VOCABULARY, (subject, item), mapping=mapped, settled=settled_on(subject, Action.ACCEPT)
    )
    later = replace(subject, observed_at=LATER)
    assert decide(later, held) == Keep()
    change = build(later, Keep(), held, Held(mapped, MERCHANT), Command("c"))
    assert (change.facts, change.decision) == ((), None)
    honest = replace(later, values=(*stated().values, guessed, stock))
    change = build(honest, Keep(), held, Held(mapped, MERCHANT), Command("c"))
    assert change.decision is not None
    assert change.decision.actor.kind is ActorKind.RULE
    assert {quote.origin for quote in change.decision.evidence} == {"adapter"}


def test_the_same_question_is_not_put_twice() -> None:
    """It is another one when the reason, the evidence or the candidates are."""
    subject = stated()
    question = Question(CaseKind.IDENTITY_MAPPING, "untrusted_new_key")
    case = case_of(subject, question)
    assert is_same_question(case, subject, question)
    later = replace(subject, observed_at=NOON + timedelta(days=1))
    assert is_same_question(case, later, question)
    assert not is_same_question(case, subject, replace(question, reason="keys_changed"))
    assert not is_same_question(case, stated(core__mpn="X"), question)
    assert not is_same_question(replace(case, status=CaseStatus.DECIDED), subject, question)


def test_a_hint_and_a_statement_make_the_same_key() -> None:
    """What counts is the value, not where on the page it stood."""
    spoken = stated(core__pack_quantity="2")
    hinted = with_basis(spoken, "core:pack_quantity", Basis.HINT)
    assert [key.identity_hash for key in spoken.keys] == [key.identity_hash for key in hinted.keys]
    assert Value("core:gtin", 1, GTIN, "", Basis.STATED, None) in {
        replace(held, quote=None) for held in spoken.values
    }
