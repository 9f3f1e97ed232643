"""The one place where a change becomes bytes: events as protobuf, commands as one jsonb argument."""

from __future__ import annotations

import base64

from google.protobuf import json_format

from prw.changes.v1 import change_pb2
from prw_resolver.stream.model import (
    CaseMove,
    Change,
    Decision,
    Fact,
    KeyLookup,
    RecordOutcome,
    Stream,
)
from prw_resolver.vocabulary.stored import quotes_json


def encode_event(stream: Stream, fact: Fact) -> bytes:
    """Serialise a fact's event, deterministically and without its position."""
    event = change_pb2.Event(
        event_id=fact.event_id,
        stream=change_pb2.Stream(
            tenant_id=stream.tenant_id,
            catalog_id=stream.catalog_id,
            history_epoch=stream.history_epoch,
        ),
        aggregate=_aggregate(fact.type, fact.id),
        revision=fact.revision,
        dependencies=[
            change_pb2.Dependency(
                aggregate=_aggregate(needed.type, needed.id), revision=needed.revision
            )
            for needed in fact.dependencies
        ],
    )
    json_format.ParseDict({fact.type.value: dict(fact.state)}, event)
    return event.SerializeToString(deterministic=True)


def encode_command(stream: Stream, change: Change) -> dict[str, object]:
    """The command as JSON values, as `resolver.stream_commit` reads it."""
    command: dict[str, object] = {
        "command_id": change.command_id,
        "digest": change.digest,
        "answer": dict(change.answer),
        "lookups": [_lookup(lookup) for lookup in change.lookups],
        "facts": [_fact(stream, fact) for fact in change.facts],
        "outcomes": [_outcome(outcome) for outcome in change.outcomes],
    }
    if change.case is not None:
        command["case"] = _case(change.case)
    if change.decision is not None:
        command["decision"] = _decision(change.decision)
    if change.woken is not None:
        command["woken"] = {"case_id": change.woken.case_id, "touched": change.woken.touched}
    if change.inbox_job_id is not None:
        command["inbox"] = {"job_id": change.inbox_job_id}
    return command


def _aggregate(kind: str, identifier: str) -> change_pb2.Aggregate:
    number = change_pb2.AggregateType.Value(f"AGGREGATE_TYPE_{kind.upper()}")
    return change_pb2.Aggregate(type=number, id=identifier)


def _fact(stream: Stream, fact: Fact) -> dict[str, object]:
    return {
        "type": fact.type.value,
        "id": fact.id,
        "revision": fact.revision,
        "row": dict(fact.row),
        "state": dict(fact.state),
        "evidence": quotes_json(fact.evidence),
        "event_id": fact.event_id,
        "event": base64.b64encode(encode_event(stream, fact)).decode("ascii"),
    }


def _decision(decision: Decision) -> dict[str, object]:
    return {
        "decision_id": decision.decision_id,
        "case_id": decision.case_id,
        "case_revision": decision.case_revision,
        "action": decision.action.value,
        "actor_kind": decision.actor.kind.value,
        "actor_id": decision.actor.id,
        "rationale": decision.rationale,
        "corrections": dict(decision.corrections),
        "evidence": quotes_json(decision.evidence),
        "prior_decisions": list(decision.prior_decisions),
    }


def _outcome(outcome: RecordOutcome) -> dict[str, object]:
    return {
        "capture_id": outcome.capture_id,
        "record_id": outcome.record_id,
        "listing_id": outcome.listing_id,
        "outcome": outcome.outcome.value,
        "actor_kind": outcome.actor_kind.value,
        "case_id": outcome.case_id,
        "code": outcome.code,
    }


def _lookup(lookup: KeyLookup) -> dict[str, object]:
    return {
        "class_id": lookup.class_id,
        "generation": lookup.generation,
        "identity_hash": lookup.identity_hash,
        "item_id": lookup.item_id,
    }


def _case(case: CaseMove) -> dict[str, object]:
    return {
        "case_id": case.case_id,
        "expected_revision": case.expected_revision,
        "status": case.status,
        "waits_for": [_lookup(lookup) for lookup in case.waits_for],
        **case.content,
    }
