"""The automatic rules, pure: a record and what is known decide, and nothing else does.

Accepted by rule is a record of which every key is owned by one and the same active item, or one is and the others are
owned by none; which contradicts that item in nothing; and every claim of which was made by an adapter. Its new keys
are added to the item. A record none of whose keys is owned makes a new item only where its source is trusted to
introduce items. What only a hint in another claim says, such as a pack size in a title, is no ground for a rule.
Everything else is a question for a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prw_resolver.catalog.model import Item, ItemStatus, ListingMapping, MappingStatus, Observation
from prw_resolver.review.model import (
    OPEN,
    Candidate,
    Case,
    CaseKind,
    Question,
    Settled,
    compare,
    evidence_digest,
)
from prw_resolver.stream.model import Action
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import Basis, IdentityKey, NormalisedRecord, Quote
from prw_sdk.evidence import Origin

RULE = "identity@1"


@dataclass(frozen=True, slots=True)
class Known:
    """What the database held when the record was looked up."""

    owners: Mapping[str, str]
    items: Mapping[str, Item]
    mapping: ListingMapping | None
    observation: Observation | None
    case: Case | None
    settled: Settled | None
    trusted: bool
    vocabulary: Vocabulary


@dataclass(frozen=True, slots=True)
class Accept:
    """The record is this item; None stands for a new one."""

    item: Item | None
    new_keys: tuple[IdentityKey, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """A person settled it on the same evidence: the mapping stays as it is."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """A person rejected it on the same evidence."""


@dataclass(frozen=True, slots=True)
class Late:
    """Something newer is known of the listing already (rule 8): history, which overwrites nothing."""


Verdict = Accept | Keep | Refuse | Late | Question


def decide(record: NormalisedRecord, known: Known) -> Verdict:
    """The verdict on a record, by the rules above."""
    if _is_late(record, known):
        return Late()
    settled = _settled(record, known)
    if settled is not None:
        return settled
    unfit = _unfit(record)
    if unfit is not None:
        return Question(CaseKind.IDENTITY_MAPPING, unfit, _candidates(record, known))
    return _by_keys(record, known)


def _is_late(record: NormalisedRecord, known: Known) -> bool:
    newer = (known.mapping, known.observation, known.case, known.settled)
    return any(held is not None and held.observed_at > record.observed_at for held in newer)


def _settled(record: NormalisedRecord, known: Known) -> Verdict | None:
    """A settled question is never asked again unless its evidence changed."""
    settled = known.settled
    if settled is None or settled.evidence_digest != evidence_digest(record):
        return None
    if settled.action is Action.REJECT:
        return Refuse()
    active = known.mapping is not None and known.mapping.status is MappingStatus.ACTIVE
    return Keep() if active else None


def _unfit(record: NormalisedRecord) -> str | None:
    """Why no rule may look at the record at all."""
    if any(quote.origin != Origin.ADAPTER for quote in _quotes(record)):
        return "model_origin"
    if record.class_id is None:
        return "unknown_class"
    if record.merchant is None:
        return "no_merchant"
    if record.ambiguous:
        return f"ambiguous:{record.ambiguous[0]}"
    if not record.keys:
        return "no_identity_key"
    hinted = _hinted(record)
    return None if hinted is None else f"hinted:{hinted}"


def _hinted(record: NormalisedRecord) -> str | None:
    """The attribute of a key that only a hint speaks for: enough to doubt the default, too little to decide by."""
    telling = {attribute for key in record.keys for attribute in key.attributes}
    guessed = (value.attribute for value in record.values if value.basis is Basis.HINT)
    return next((attribute for attribute in guessed if attribute in telling), None)


def _quotes(record: NormalisedRecord) -> Iterator[Quote]:
    """What the record rests on."""
    for value in (*record.values, record.merchant):
        if value is not None and value.quote is not None:
            yield value.quote


def _by_keys(record: NormalisedRecord, known: Known) -> Verdict:
    owners = {
        known.owners[key.identity_hash] for key in record.keys if key.identity_hash in known.owners
    }
    if len(owners) > 1:
        return Question(CaseKind.CONFLICT, "keys_of_two_items", _candidates(record, known))
    if not owners:
        return _unowned(record, known)
    return _owned(record, known.items[owners.pop()], known)


def _unowned(record: NormalisedRecord, known: Known) -> Verdict:
    if known.mapping is not None:
        return Question(CaseKind.CONFLICT, "keys_changed", _candidates(record, known))
    if not known.trusted:
        return Question(CaseKind.IDENTITY_MAPPING, "untrusted_new_key", _candidates(record, known))
    return Accept(None, record.keys)


def _owned(record: NormalisedRecord, item: Item, known: Known) -> Verdict:
    candidate = compare(record, item, known.vocabulary)
    if candidate.disagree:
        return Question(
            CaseKind.CONFLICT, f"contradiction:{candidate.disagree[0]}", _candidates(record, known)
        )
    if item.status is not ItemStatus.ACTIVE:
        return Question(CaseKind.IDENTITY_MAPPING, "item_not_active", _candidates(record, known))
    if known.mapping is not None and known.mapping.item_id != item.item_id:
        return Question(CaseKind.CONFLICT, "other_item_than_mapped", _candidates(record, known))
    new_keys = tuple(key for key in record.keys if key.identity_hash not in known.owners)
    return Accept(item, new_keys)


def _candidates(record: NormalisedRecord, known: Known) -> tuple[Candidate, ...]:
    """The items that share an identifier with the record, the likeliest first."""
    held = [compare(record, item, known.vocabulary) for item in known.items.values()]
    return tuple(sorted(held, key=lambda candidate: (-float(candidate.score), candidate.item_id)))


def is_same_question(case: Case, record: NormalisedRecord, question: Question) -> bool:
    """Whether the open case asks this already: nothing is put before a person twice."""
    return (
        case.status in OPEN
        and case.reason == question.reason
        and case.evidence_digest == evidence_digest(record)
        and {held.item_id for held in case.candidates}
        == {held.item_id for held in question.candidates}
    )
