"""Cases and their pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import TypeAdapter

from prw_base.canonical import canonical_json, sha256_hex
from prw_resolver.catalog.acceptance import record_evidence, record_listing_id
from prw_resolver.catalog.model import Item
from prw_resolver.stream.model import Action, CaseMove, KeyLookup
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord, Quote
from prw_resolver.vocabulary.stored import quotes_json, record_json


class CaseKind(StrEnum):
    """What a case is about."""

    IDENTITY_MAPPING = "identity_mapping"
    CONFLICT = "conflict"
    RETRACTION = "retraction"
    SPLIT = "split"
    MERGE = "merge"
    ACTIVATION = "activation"
    DEGRADED_SOURCE = "degraded_source"


class CaseStatus(StrEnum):
    """How far a case has come."""

    AWAITING_HUMAN = "awaiting_human"
    DEFERRED = "deferred"
    DECIDED = "decided"
    SUPERSEDED = "superseded"


OPEN = frozenset({CaseStatus.AWAITING_HUMAN, CaseStatus.DEFERRED})


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that a listing may be, with what speaks for and against it."""

    item_id: str
    title: str
    score: str
    agree: tuple[str, ...]
    disagree: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """Why no rule may decide: the reason is a stable word, with an attribute after a colon where there is one."""

    kind: CaseKind
    reason: str
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A question for a person, with the record as it stood when it was asked."""

    case_id: str
    kind: CaseKind
    status: CaseStatus
    revision: int
    reason: str
    listing_id: str
    source_id: str
    listing_key: str
    title: str
    record: NormalisedRecord
    candidates: tuple[Candidate, ...]
    evidence: tuple[Quote, ...]
    evidence_digest: str
    observed_at: datetime
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class Settled:
    """A person's last word on a listing, and the evidence that it was given on."""

    action: Action
    evidence_digest: str
    decision_id: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One decision taken on a case."""

    decision_id: str
    case_revision: int
    action: str
    actor_kind: str
    actor_id: str
    rationale: str
    decided_at: datetime


CANDIDATES = TypeAdapter(tuple[Candidate, ...])


def evidence_digest(record: NormalisedRecord) -> str:
    """What a question rests on: a settled one is asked again only where this has changed.

    Price and availability are no part of it, nor is where on the page a value stood.
    """
    values = sorted(
        [value.attribute, value.value, value.unit, value.basis.value]
        for value in record.values
        if not value.attribute.startswith("offer:")
    )
    merchant = None if record.merchant is None else record.merchant.value
    stated = {
        "class": record.class_id,
        "values": values,
        "ambiguous": sorted(record.ambiguous),
        "merchant": merchant,
    }
    return sha256_hex(canonical_json(stated))


def compare(record: NormalisedRecord, item: Item, vocabulary: Vocabulary) -> Candidate:
    """Hold a record against an item, over every attribute whose difference would be a contradiction."""
    agree, disagree, missing = [], [], []
    for definition in vocabulary.attributes:
        if not definition.contradiction or not vocabulary.applies(definition, item.class_id):
            continue
        ours, theirs = record.value(definition.key), item.attribute(definition.key)
        if ours is None or theirs is None:
            missing.append(definition.key)
        elif (ours.value, ours.unit) == (theirs.value, theirs.unit):
            agree.append(definition.key)
        else:
            disagree.append(definition.key)
    known = len(agree) + len(disagree)
    score = f"{len(agree) / known:.2f}" if known else "0.00"
    return Candidate(item.item_id, item.title, score, tuple(agree), tuple(disagree), tuple(missing))


def open_case(
    case_id: str, record: NormalisedRecord, question: Question, waits_for: tuple[KeyLookup, ...]
) -> CaseMove:
    """The move that opens a case about a record."""
    return CaseMove(case_id, 0, CaseStatus.AWAITING_HUMAN, content(record, question), waits_for)


def reask(
    case: Case, record: NormalisedRecord, question: Question, waits_for: tuple[KeyLookup, ...]
) -> CaseMove:
    """The move that puts newer evidence or another reason before the person, under a new revision."""
    return CaseMove(
        case.case_id,
        case.revision,
        CaseStatus.AWAITING_HUMAN,
        content(record, question),
        waits_for,
    )


def close(case: Case, status: CaseStatus) -> CaseMove:
    """The move that ends a case, which then waits for nothing."""
    return CaseMove(case.case_id, case.revision, status)


def put_off(case: Case) -> CaseMove:
    """The move that defers a case: still open, it waits for its keys as before."""
    waits_for = tuple(
        KeyLookup(key.class_id, key.generation, key.identity_hash, None) for key in case.record.keys
    )
    return CaseMove(case.case_id, case.revision, CaseStatus.DEFERRED, waits_for=waits_for)


def content(record: NormalisedRecord, question: Question) -> Mapping[str, object]:
    """What a case shows of a record and of the question about it, as JSON values."""
    return {
        "kind": question.kind.value,
        "reason": question.reason,
        "listing_id": record_listing_id(record),
        "source_id": record.source_id,
        "listing_key": record.listing_key,
        "title": record.title,
        "record": record_json(record),
        "candidates": CANDIDATES.dump_python(question.candidates, mode="json"),
        "evidence": quotes_json(record_evidence(record)),
        "evidence_digest": evidence_digest(record),
        "observed_at": record.observed_at.isoformat(),
    }
