"""What holds changes back from being pruned: consumers, leases, and who did what to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class ConsumerStatus(StrEnum):
    """Whether a consumer holds retention. Only a retired one does not."""

    LIVE = "live"
    PAUSED = "paused"
    """Known to be away: it holds what it has not processed, and its next report makes it live."""
    RETIRED = "retired"
    """Given up by an operator: what it has not processed may go, and it is refused until it is resumed."""


class ConsumerAct(StrEnum):
    """What an operator does to a consumer, as the audit names it."""

    PAUSE = "paused"
    RESUME = "resumed"
    RETIRE = "retired"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A registered consumer of a stream; `reported_at` is None before its first report."""

    consumer_id: str
    principal: str
    status: str
    reported_position: int
    reported_at: datetime | None
    registered_at: datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """A rebuild's hold on every change after `pin`, by the database's clock."""

    lease_id: str
    pin: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class RetentionEvent:
    """Who did what to a consumer or a lease, when and why; `position` is where that stood."""

    at: datetime
    act: str
    subject: str
    actor: str
    reason: str
    position: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Somebody who holds changes back: all after `position`.

    `held` counts positions, `held_bytes` is estimated from the first of them. `oldest_at` is when the oldest one held
    was committed, None where none is; `heard_at` when the consumer last reported, or the lease was granted. `now` is
    the database's clock.
    """

    kind: str
    holder: str
    principal: str
    status: str
    position: int
    held: int
    held_bytes: int
    oldest_at: datetime | None
    heard_at: datetime
    expires_at: datetime | None
    now: datetime

    @property
    def age(self) -> timedelta:
        """How long the oldest change is held; zero where none is."""
        return timedelta(0) if self.oldest_at is None else self.now - self.oldest_at


@dataclass(frozen=True, slots=True)
class Budget:
    """What one holder may hold before an alarm says so. Nothing is ever pruned for a budget's sake."""

    positions: int
    bytes: int
    age: timedelta

    def exceeded(self, hold: Hold) -> tuple[str, ...]:
        """Which limits the holder has passed, as an alarm names them."""
        passed = {
            "positions": hold.held > self.positions,
            "bytes": hold.held_bytes > self.bytes,
            "age": hold.age > self.age,
        }
        return tuple(name for name, over in passed.items() if over)


@dataclass(frozen=True, slots=True)
class PruneSettings:
    """`age` is how old a change must be, `batch` how many go in one transaction, `interval` from round to round."""

    age: timedelta
    interval: timedelta
    budget: Budget
    batch: int = 1000
