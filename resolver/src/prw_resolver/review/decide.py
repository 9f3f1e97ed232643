"""From a person's decision to the change that records it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json, sha256_hex
from prw_resolver.catalog.acceptance import Held, accept_record
from prw_resolver.catalog.model import Item, ListingMapping, MappingStatus, mapping_fact
from prw_resolver.review.model import Case, CaseStatus, close, compare, put_off
from prw_resolver.stream.model import (
    Action,
    Actor,
    CaseMove,
    Change,
    Decision,
    Fact,
    KeyLookup,
    Outcome,
    RecordOutcome,
)
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import IdentityKey, NormalisedRecord


@dataclass(frozen=True, slots=True)
class Request:
    """A person's decision as it was asked for."""

    case_id: str
    expected_revision: int
    action: Action
    rationale: str
    idempotency_key: str
    corrections: Mapping[str, str] = field(default_factory=dict)
    create_item: bool = False
    map_to: str | None = None

    def digest(self) -> str:
        """What counts as the same request under one idempotency key."""
        asked = {
            "case_id": self.case_id,
            "expected_revision": self.expected_revision,
            "action": self.action.value,
            "rationale": self.rationale,
            "corrections": dict(self.corrections),
            "create_item": self.create_item,
            "map_to": self.map_to,
        }
        return sha256_hex(canonical_json(asked))


@dataclass(frozen=True, slots=True)
class Ground:
    """What the decision rests on: the case, the record with its corrections, and what is accepted already."""

    case: Case
    record: NormalisedRecord
    item: Item | None
    owners: Mapping[str, str]
    held: Held
    vocabulary: Vocabulary


@dataclass(frozen=True, slots=True)
class Ruling:
    """Who rules, under which durable command."""

    command_id: str
    digest: str
    actor: Actor


OUTCOMES = {
    Action.ACCEPT: Outcome.ACCEPTED,
    Action.CORRECT: Outcome.ACCEPTED,
    Action.REJECT: Outcome.REJECTED,
    Action.RETRACT: Outcome.RETRACTION,
    Action.DEFER: Outcome.IN_REVIEW,
}


def rule(asked: Request, ground: Ground, ruling: Ruling) -> Change:
    """The change that records the decision, the case's new revision and the facts, all or nothing."""
    facts, lookups = _facts(asked, ground)
    case, record = ground.case, ground.record
    decision = _decision(asked, case, ruling.actor)
    return Change(
        command_id=ruling.command_id,
        tenant_id=record.tenant_id,
        catalog_id=record.catalog_id,
        digest=ruling.digest,
        decision=decision,
        facts=facts,
        lookups=lookups,
        case=_move(asked, case),
        outcomes=(_outcome(asked, ground, ruling.actor),),
        answer={
            "decision_id": decision.decision_id,
            "case_id": case.case_id,
            "case_revision": case.revision + 1,
            "event_ids": [fact.event_id for fact in facts],
        },
    )


def _decision(asked: Request, case: Case, actor: Actor) -> Decision:
    return Decision(
        asked.action,
        actor,
        asked.rationale,
        case.evidence,
        corrections=asked.corrections,
        case_id=case.case_id,
        case_revision=case.revision,
    )


def _move(asked: Request, case: Case) -> CaseMove:
    return put_off(case) if asked.action is Action.DEFER else close(case, CaseStatus.DECIDED)


def _outcome(asked: Request, ground: Ground, actor: Actor) -> RecordOutcome:
    return RecordOutcome(
        ground.record.capture_id,
        ground.record.record_id,
        ground.case.listing_id,
        OUTCOMES[asked.action],
        actor.kind,
        ground.case.case_id,
    )


def _facts(asked: Request, ground: Ground) -> tuple[tuple[Fact, ...], tuple[KeyLookup, ...]]:
    match asked.action:
        case Action.ACCEPT | Action.CORRECT:
            _require_acceptable(ground.record)
            keys = _new_keys(asked, ground)
            facts = accept_record(ground.record, ground.item, keys, ground.held, ground.vocabulary)
            return _resting_on(facts, ground.case), _free(keys)
        case Action.RETRACT if ground.held.mapping is not None:
            return (_retraction(ground.held.mapping, ground),), ()
        case _:
            return (), ()


def _require_acceptable(record: NormalisedRecord) -> None:
    if record.class_id is None:
        raise PrwError(
            Code.VALIDATION_FAILED,
            "no published class fits the record; correct the attributes that its class is told by",
            field="corrections",
        )
    if record.merchant is None:
        raise PrwError(
            Code.VALIDATION_FAILED,
            "the record names no merchant; correct offer:seller",
            field="corrections",
        )


def _new_keys(asked: Request, ground: Ground) -> tuple[IdentityKey, ...]:
    """The keys that the item gets with the record.

    A new item needs all of them free. An item that a person maps the record to gets the free ones only where the
    record, as corrected, contradicts it in nothing: a stale part number must not become its key.
    """
    free = tuple(key for key in ground.record.keys if key.identity_hash not in ground.owners)
    if asked.create_item:
        if len(free) < len(ground.record.keys):
            owner = next(iter(ground.owners.values()))
            raise PrwError(
                Code.KEY_TAKEN,
                f"item {owner} owns a key of this record: map it there",
                field="create_item",
            )
        return free
    if ground.item is None or compare(ground.record, ground.item, ground.vocabulary).disagree:
        return ()
    return free


def _resting_on(facts: tuple[Fact, ...], case: Case) -> tuple[Fact, ...]:
    """A fact that a correction made has no quote of its own: it rests on the case's evidence."""
    return tuple(fact if fact.evidence else replace(fact, evidence=case.evidence) for fact in facts)


def _free(keys: tuple[IdentityKey, ...]) -> tuple[KeyLookup, ...]:
    return tuple(KeyLookup(key.class_id, key.generation, key.identity_hash, None) for key in keys)


def _retraction(mapping: ListingMapping, ground: Ground) -> Fact:
    if ground.held.merchant is None:
        raise PrwError(Code.NOT_FOUND, f"the merchant of listing {mapping.listing_id} is not known")
    gone = replace(mapping, revision=mapping.revision + 1, status=MappingStatus.RETRACTED)
    return mapping_fact(gone, ground.held.merchant, ground.case.evidence)
