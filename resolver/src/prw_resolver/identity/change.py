"""From a verdict to the change that records it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from prw_base.ids import new_id
from prw_resolver.catalog.acceptance import (
    Held,
    accept_record,
    observe_record,
    record_evidence,
    record_listing_id,
)
from prw_resolver.catalog.model import ListingMapping
from prw_resolver.identity.model import (
    RULE,
    Accept,
    Keep,
    Known,
    Late,
    Refuse,
    Verdict,
    is_same_question,
)
from prw_resolver.review.model import CaseStatus, Question, close, open_case, reask
from prw_resolver.stream.model import (
    Action,
    Actor,
    ActorKind,
    AggregateType,
    Change,
    Decision,
    Fact,
    KeyLookup,
    Outcome,
    RecordOutcome,
    Wake,
)
from prw_resolver.vocabulary.model import IdentityKey, NormalisedRecord
from prw_sdk.evidence import Origin

BY_RULE = Actor(ActorKind.RULE, RULE)


@dataclass(frozen=True, slots=True)
class Command:
    """What the change answers: a record of a job, or a case that was woken."""

    command_id: str
    inbox_job_id: str | None = None
    woken: Wake | None = None


def build(
    record: NormalisedRecord, verdict: Verdict, known: Known, held: Held, command: Command
) -> Change:
    """The change that makes the verdict durable, bound to what was known when it was made."""
    match verdict:
        case Question():
            return _ask(record, verdict, known, command)
        case Accept():
            facts = accept_record(record, verdict.item, verdict.new_keys, held, known.vocabulary)
            return _accept(
                record, facts, known, command, "every key is one item's, and nothing contradicts it"
            )
        case Keep():
            facts = () if known.mapping is None else _observe(record, known.mapping, held)
            return _accept(
                record, facts, known, command, "a person settled it on the same evidence"
            )
        case Refuse():
            return _note(record, Outcome.REJECTED, known, command)
        case Late():
            return _note(record, Outcome.HISTORY, known, command)


def _observe(record: NormalisedRecord, mapping: ListingMapping, held: Held) -> tuple[Fact, ...]:
    """The newer observation, but for one that a model read: that a person settled the identity says nothing of it."""
    return tuple(
        fact
        for fact in observe_record(record, mapping, held)
        if all(quote.origin == Origin.ADAPTER for quote in fact.evidence)
    )


def _ask(record: NormalisedRecord, question: Question, known: Known, command: Command) -> Change:
    # Whatever the question is, a key that becomes active may answer it, or bring another candidate.
    waits_for = _lookups(record.keys, known)
    if known.case is None:
        move = open_case(new_id("case"), record, question, waits_for)
    elif is_same_question(known.case, record, question):
        return _note(record, Outcome.IN_REVIEW, known, command, known.case.case_id)
    else:
        move = reask(known.case, record, question, waits_for)
    return replace(_note(record, Outcome.IN_REVIEW, known, command, move.case_id), case=move)


def _accept(
    record: NormalisedRecord,
    facts: tuple[Fact, ...],
    known: Known,
    command: Command,
    rationale: str,
) -> Change:
    case = known.case
    changes_identity = any(fact.type is not AggregateType.INVENTORY_OBSERVATION for fact in facts)
    outcome = Outcome.ACCEPTED if changes_identity else Outcome.UNCHANGED
    note = _note(record, outcome, known, command, None if case is None else case.case_id)
    return replace(
        note,
        facts=facts,
        decision=_decision(record, known, rationale) if facts else None,
        case=None if case is None else close(case, CaseStatus.SUPERSEDED),
    )


def _decision(record: NormalisedRecord, known: Known, rationale: str) -> Decision:
    return Decision(
        Action.ACCEPT,
        BY_RULE,
        rationale,
        tuple(quote for quote in record_evidence(record) if quote.origin == Origin.ADAPTER),
        prior_decisions=() if known.settled is None else (known.settled.decision_id,),
        case_id=None if known.case is None else known.case.case_id,
        case_revision=None if known.case is None else known.case.revision,
    )


def _note(
    record: NormalisedRecord,
    outcome: Outcome,
    known: Known,
    command: Command,
    case_id: str | None = None,
) -> Change:
    """The outcome of a record alone, bound to the owners of its keys as they were looked up."""
    recorded = RecordOutcome(
        record.capture_id,
        record.record_id,
        record_listing_id(record),
        outcome,
        ActorKind.RULE,
        case_id,
    )
    return Change(
        command_id=command.command_id,
        tenant_id=record.tenant_id,
        catalog_id=record.catalog_id,
        digest=command.command_id,
        lookups=_lookups(record.keys, known),
        outcomes=(recorded,),
        woken=command.woken,
        inbox_job_id=command.inbox_job_id,
        answer={"outcome": outcome.value},
    )


def _lookups(keys: tuple[IdentityKey, ...], known: Known) -> tuple[KeyLookup, ...]:
    return tuple(
        KeyLookup(
            key.class_id, key.generation, key.identity_hash, known.owners.get(key.identity_hash)
        )
        for key in keys
    )
