"""An accepted change as a value, complete before any lock is taken (AW-01)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from prw_base.ids import new_id
from prw_resolver.vocabulary.model import Quote


class AggregateType(StrEnum):
    """The kinds of things that change, as stored."""

    CATALOG_ITEM = "catalog_item"
    LISTING_MAPPING = "listing_mapping"
    MERCHANT = "merchant"
    SOURCE = "source"
    SHIPPING_POLICY = "shipping_policy"
    INVENTORY_OBSERVATION = "inventory_observation"
    RELEASE = "release"


class ActorKind(StrEnum):
    """Who decides. There is no third kind: no model's word is ever a fact."""

    PERSON = "person"
    RULE = "rule"


class Action(StrEnum):
    """What a decision does."""

    ACCEPT = "accept"
    CORRECT = "correct"
    REJECT = "reject"
    DEFER = "defer"
    SPLIT = "split"
    MERGE = "merge"
    RETRACT = "retract"
    APPROVE = "approve"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Stream:
    """One ordered history; the epoch is an ordinal from 1."""

    tenant_id: str
    catalog_id: str
    history_epoch: int


@dataclass(frozen=True, slots=True)
class Dependency:
    """A revision that must be applied before."""

    type: AggregateType
    id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, or a rule with its version."""

    kind: ActorKind
    id: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One aggregate's new revision.

    `row` is what the SQL function of the owning room stores; `state` is the full state after the change, named as in
    the event's body; `evidence` is never empty (INV-05).
    """

    type: AggregateType
    id: str
    revision: int
    row: Mapping[str, object]
    state: Mapping[str, object]
    evidence: tuple[Quote, ...]
    dependencies: tuple[Dependency, ...] = ()
    event_id: str = field(default_factory=lambda: new_id("evt"))


@dataclass(frozen=True, slots=True)
class Decision:
    """Why the facts are accepted. Immutable once recorded."""

    action: Action
    actor: Actor
    rationale: str
    evidence: tuple[Quote, ...]
    corrections: Mapping[str, str] = field(default_factory=dict)
    prior_decisions: tuple[str, ...] = ()
    case_id: str | None = None
    case_revision: int | None = None
    decision_id: str = field(default_factory=lambda: new_id("dec"))


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """The owner of an identity key as the decider saw it; None for no owner."""

    class_id: str
    generation: int
    identity_hash: str
    item_id: str | None


@dataclass(frozen=True, slots=True)
class CaseMove:
    """A case opened (`expected_revision` 0) or moved from the revision that the decider saw (INV-04).

    Of `content`, what is not given stays as it is.
    """

    case_id: str
    expected_revision: int
    status: str
    content: Mapping[str, object] = field(default_factory=dict)
    waits_for: tuple[KeyLookup, ...] = ()


class Outcome(StrEnum):
    """What became of a record, as its receipt says it."""

    ACCEPTED = "accepted"
    UNCHANGED = "unchanged"
    """It says nothing new of its item's identity."""
    IN_REVIEW = "in_review"
    REJECTED = "rejected"
    HISTORY = "history"
    """Something newer was known already (rule 8)."""
    RETRACTION = "retraction"


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """What became of one record of a capture."""

    capture_id: str
    record_id: str
    listing_id: str
    outcome: Outcome
    actor_kind: ActorKind
    case_id: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """A wake-up that this change answers; a later one of the same case stays."""

    case_id: str
    touched: int


@dataclass(frozen=True, slots=True)
class Change:
    """A command to a stream. Its id is durable: asked again, it gives its former answer.

    `digest` says what counts as the same command; another digest under the same id is IDEMPOTENCY_CONFLICT.
    """

    command_id: str
    tenant_id: str
    catalog_id: str
    digest: str
    decision: Decision | None = None
    facts: tuple[Fact, ...] = ()
    lookups: tuple[KeyLookup, ...] = ()
    case: CaseMove | None = None
    outcomes: tuple[RecordOutcome, ...] = ()
    woken: Wake | None = None
    inbox_job_id: str | None = None
    answer: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.facts and self.decision is None:
            raise ValueError("a change with facts needs a decision (INV-05)")


@dataclass(frozen=True, slots=True)
class Committed:
    """Where a change stands in its stream. A change without facts has no positions of its own."""

    first_position: int
    last_position: int
    answer: Mapping[str, object]
    replayed: bool


@dataclass(frozen=True, slots=True)
class StoredChange:
    """One committed event as every reader gets it."""

    position: int
    committed_at: datetime
    event: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive changes, read together with the cursor and the floor that they were read against."""

    changes: tuple[StoredChange, ...]
    cursor_position: int
    pruned_through: int
