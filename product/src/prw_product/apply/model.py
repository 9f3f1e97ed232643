"""Changes as the projection sees them, and the pure rules that decide what becomes of each.

Nothing here assumes that changes come in order or once (AW-04, "Delivering and applying").
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from prw_product.publish.model import Attribute, Generation, Release


class AggregateType(StrEnum):
    """Kinds of things that change, as they are written in the database."""

    CATALOG_ITEM = "catalog_item"
    LISTING_MAPPING = "listing_mapping"
    MERCHANT = "merchant"
    SOURCE = "source"
    SHIPPING_POLICY = "shipping_policy"
    INVENTORY_OBSERVATION = "inventory_observation"
    RELEASE = "release"


class Outcome(StrEnum):
    """What became of a position. The first three are processed, the others hold progress."""

    APPLIED = "applied"
    STALE = "stale"
    DUPLICATE = "duplicate"
    PARKED = "parked"
    POISON = "poison"


class DeadCode(StrEnum):
    """Why an event is in the dead letters."""

    SCOPE_NOT_PROJECTED = "SCOPE_NOT_PROJECTED"
    EPOCH_UNKNOWN = "EPOCH_UNKNOWN"
    SCHEMA_INVALID = "SCHEMA_INVALID"
    NOT_APPLICABLE = "NOT_APPLICABLE"


@dataclass(frozen=True, slots=True)
class Key:
    """One aggregate."""

    type: AggregateType
    id: str


@dataclass(frozen=True, slots=True)
class Need:
    """A revision that must be applied before: met when at least it is.

    ``exact`` asks also that the state at that very revision is stored: a release shows the mapping
    as it stood when it was released, not as it stands now.
    """

    key: Key
    revision: int
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An item's full state."""

    item_id: str
    class_id: str
    status: str
    successors: tuple[str, ...]
    title: str
    attributes: tuple[Attribute, ...]
    keys: tuple[tuple[str, int, str], ...]
    """Rule, generation of the rules, hex SHA-256."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which item a listing is, and what the listing states of itself."""

    listing_id: str
    item_id: str
    item_revision: int
    status: str
    source_id: str
    listing_key: str
    merchant_id: str
    url: str
    title: str
    observed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Merchant:
    """Who sells."""

    merchant_id: str
    name: str
    source_id: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where listings come from."""

    source_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """A listing's price (an exact amount in an ISO 4217 currency) and availability."""

    listing_id: str
    price_amount: Decimal | None
    price_currency: str | None
    availability: str
    observed_at: datetime | None


Body = Item | Mapping | Merchant | Source | Inventory | Release


@dataclass(frozen=True, slots=True)
class Delivery:
    """A change as it came: its place, and the event's bytes, the same for every reader for ever."""

    position: int
    committed_at: datetime
    event: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """A decoded event at its place."""

    delivery: Delivery
    digest: bytes
    event_id: str
    tenant_id: str
    catalog_id: str
    history_epoch: int
    key: Key
    revision: int
    needs: tuple[Need, ...]
    body: Body

    @property
    def position(self) -> int:
        """Place in the stream."""
        return self.delivery.position


@dataclass(frozen=True, slots=True)
class Poison:
    """A delivery that cannot be decoded or applied; it holds progress and is alarmed."""

    delivery: Delivery
    digest: bytes
    code: DeadCode
    message: str
    event_id: str | None = None

    @property
    def position(self) -> int:
        """Place in the stream."""
        return self.delivery.position


@dataclass(frozen=True, slots=True)
class Seen:
    """An inbox row."""

    position: int
    event_id: str | None
    digest: bytes
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Sorted:
    """A batch after the checks that come before the inbox: scope, then epoch."""

    events: tuple[Event, ...]
    undecoded: tuple[Poison, ...]
    refused: tuple[Poison, ...]
    fenced: tuple[Event, ...]
    newest_epoch: int
    """The greatest epoch of the batch."""


def sort_out(decoded: list[Event | Poison], generation: Generation) -> Sorted:
    """Split a batch by scope and epoch; an event is never relabelled."""
    poison = tuple(d for d in decoded if isinstance(d, Poison))
    events = [d for d in decoded if isinstance(d, Event)]
    ours = [event for event in events if _in_scope(event, generation)]
    refused = [_foreign(event) for event in events if not _in_scope(event, generation)]
    epoch = generation.history_epoch
    refused += [_unknown_epoch(event) for event in ours if event.history_epoch > epoch]
    return Sorted(
        tuple(event for event in ours if event.history_epoch == epoch),
        poison,
        tuple(refused),
        tuple(event for event in ours if event.history_epoch < epoch),
        max((event.history_epoch for event in ours), default=epoch),
    )


def _in_scope(event: Event, generation: Generation) -> bool:
    scope = generation.scope
    return (event.tenant_id, event.catalog_id) == (scope.tenant_id, scope.catalog_id)


def _foreign(event: Event) -> Poison:
    message = f"stream {event.tenant_id}/{event.catalog_id} is not projected here"
    code = DeadCode.SCOPE_NOT_PROJECTED
    return Poison(event.delivery, event.digest, code, message, event.event_id)


def _unknown_epoch(event: Event) -> Poison:
    message = f"epoch {event.history_epoch} is newer than the one that is followed"
    code = DeadCode.EPOCH_UNKNOWN
    return Poison(event.delivery, event.digest, code, message, event.event_id)


class ContentChanged(Exception):
    """A position, or an event's id, came again with other content: histories have parted (I7)."""

    def __init__(self, position: int) -> None:
        super().__init__(f"position {position}, or its event's id, has had other content before")
        self.position = position


@dataclass(frozen=True, slots=True)
class Fresh:
    """What of a batch is new, and which positions only repeat another's event."""

    events: tuple[Event, ...]
    repeats: tuple[Event, ...]
    undecoded: tuple[Poison, ...]
    redelivered: int


def find_fresh(batch: Sorted, progress: int, inbox: list[Seen]) -> Fresh:
    """Drop what is processed, parked or there twice; raises ContentChanged.

    A poison position is tried again each time it is delivered: an upgrade may understand it.
    """
    settled = {seen.position: seen for seen in inbox if seen.outcome is not Outcome.POISON}
    _check_content(batch, {seen.position: seen.digest for seen in inbox})
    known = {s.event_id: s for s in inbox if s.outcome is not Outcome.DUPLICATE}
    events: dict[int, Event] = {}
    repeats: dict[int, Event] = {}
    for event in sorted(batch.events, key=lambda e: e.position):
        if event.position <= progress or event.position in settled:
            continue
        first = known.setdefault(event.event_id, _as_seen(event))
        if first.digest != event.digest:
            raise ContentChanged(event.position)
        into = events if first.position == event.position else repeats
        into.setdefault(event.position, event)
    redelivered = len(batch.events) - len(events) - len(repeats)
    return Fresh(
        tuple(events.values()),
        tuple(repeats.values()),
        _new_poison(batch, progress, settled),
        redelivered,
    )


def _as_seen(event: Event) -> Seen:
    return Seen(event.position, event.event_id, event.digest, Outcome.APPLIED)


def _new_poison(batch: Sorted, progress: int, settled: dict[int, Seen]) -> tuple[Poison, ...]:
    held = [p for p in batch.undecoded if p.position > progress and p.position not in settled]
    return tuple({poison.position: poison for poison in held}.values())


def _check_content(batch: Sorted, digests: dict[int, bytes]) -> None:
    ours: tuple[Event | Poison, ...] = (*batch.events, *batch.undecoded)
    for one in ours:
        if digests.setdefault(one.position, one.digest) != one.digest:
            raise ContentChanged(one.position)
