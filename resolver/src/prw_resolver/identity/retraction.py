"""A source that no longer serves a page: for each listing that was accepted from it a person is asked. Pure.

What a retraction rests on is nothing new but that the page is gone: the case keeps the evidence of the mapping that
would be retracted, and its record names the capture of the absence. An absence has no words of its own to quote.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from prw_base.canonical import canonical_json, sha256_hex
from prw_base.ids import new_id
from prw_base.scope import Scope
from prw_resolver.catalog.model import Item, ListingMapping, MappingStatus, Observation
from prw_resolver.review.model import (
    OPEN,
    Case,
    CaseKind,
    CaseStatus,
    Question,
    Settled,
    compare,
    content,
)
from prw_resolver.stream.model import Action, ActorKind, CaseMove, Change, Outcome, RecordOutcome
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord, Quote
from prw_resolver.vocabulary.stored import quotes_json

REASON = "absent_at_source"


@dataclass(frozen=True, slots=True)
class Absence:
    """A capture that says that its source no longer has a planned target."""

    scope: Scope
    source_id: str
    native_record_id: str
    capture_id: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class Mapped:
    """A listing of the target that is accepted, with what is known of it."""

    mapping: ListingMapping
    evidence: tuple[Quote, ...]
    item: Item
    observation: Observation | None
    case: Case | None
    settled: Settled | None


def ask(absence: Absence, mapped: Mapped, vocabulary: Vocabulary, command_id: str) -> Change:
    """The change that puts the listing's absence before a person, or notes why nobody need be asked.

    It is history where something newer is known of the listing (rule 8), and rejected where a person has said that
    the listing stays and nothing was seen of it since.
    """
    outcome, move = _answer(absence, mapped, vocabulary)
    case_id = None if move is None else move.case_id
    if move is None and outcome is Outcome.IN_REVIEW and mapped.case is not None:
        case_id = mapped.case.case_id
    recorded = RecordOutcome(
        absence.capture_id,
        record_id(mapped.mapping),
        mapped.mapping.listing_id,
        outcome,
        ActorKind.RULE,
        case_id,
    )
    return Change(
        command_id=command_id,
        tenant_id=absence.scope.tenant_id,
        catalog_id=absence.scope.catalog_id,
        digest=command_id,
        case=move,
        outcomes=(recorded,),
        answer={"outcome": outcome.value},
    )


def record_id(mapping: ListingMapping) -> str:
    """What the receipt of an absence calls the listing."""
    return f"absent:{mapping.listing_id}"


def digest(mapped: Mapped) -> str:
    """What the question rests on: the mapping, and what was last seen of the listing."""
    seen = 0 if mapped.observation is None else mapped.observation.revision
    stated = {
        "listing": mapped.mapping.listing_id,
        "mapping": mapped.mapping.revision,
        "seen": seen,
    }
    return sha256_hex(canonical_json(stated))


def _answer(
    absence: Absence, mapped: Mapped, vocabulary: Vocabulary
) -> tuple[Outcome, CaseMove | None]:
    case, settled = mapped.case, mapped.settled
    if mapped.mapping.status is not MappingStatus.ACTIVE:
        return Outcome.UNCHANGED, None
    newer = (mapped.mapping, mapped.observation, case)
    if any(held is not None and held.observed_at > absence.observed_at for held in newer):
        return Outcome.HISTORY, None
    asked = digest(mapped)
    if settled is not None and (settled.action, settled.evidence_digest) == (Action.REJECT, asked):
        return Outcome.REJECTED, None
    if case is not None and case.status in OPEN and case.evidence_digest == asked:
        return Outcome.IN_REVIEW, None
    return Outcome.IN_REVIEW, _move(absence, mapped, vocabulary, asked)


def _move(absence: Absence, mapped: Mapped, vocabulary: Vocabulary, asked: str) -> CaseMove:
    """Opens the case, or puts the absence in place of what else was asked about a listing that is gone."""
    record = _record(absence, mapped, vocabulary)
    candidate = compare(record, mapped.item, vocabulary)
    question = Question(CaseKind.RETRACTION, REASON, (candidate,))
    told = {
        **content(record, question),
        "evidence": quotes_json(mapped.evidence),
        "evidence_digest": asked,
    }
    case = mapped.case
    case_id = new_id("case") if case is None else case.case_id
    return CaseMove(case_id, 0 if case is None else case.revision, CaseStatus.AWAITING_HUMAN, told)


def _record(absence: Absence, mapped: Mapped, vocabulary: Vocabulary) -> NormalisedRecord:
    """The listing as it is known; the absence states no value, so that it has none and makes no key."""
    mapping = mapped.mapping
    return NormalisedRecord(
        tenant_id=absence.scope.tenant_id,
        catalog_id=absence.scope.catalog_id,
        capture_id=absence.capture_id,
        record_id=record_id(mapping),
        source_id=mapping.source_id,
        listing_key=mapping.listing_key,
        observed_at=absence.observed_at,
        class_id=mapped.item.class_id,
        generation=max(generation.number for generation in vocabulary.generations),
        title=mapping.title,
        url=mapping.url,
        merchant=None,
        values=(),
        keys=(),
    )
