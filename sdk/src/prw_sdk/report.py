"""What a run tells while it goes on, and what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prw_sdk.account import Breach, Change
from prw_sdk.spool.model import Outcome


class EventKind(StrEnum):
    """What happened."""

    WAITING = "waiting"
    STARTED = "started"
    PLANNED = "planned"
    SETTLED = "settled"
    SKIPPED = "skipped"
    CHECKPOINT = "checkpoint"
    CHANGED = "changed"
    """A name that the source states is new, gone, emptied, renamed or of another kind since its last good run."""
    BREACHED = "breached"
    """The run did not come to what its source says it must come to."""
    FAILED = "failed"
    ENDED = "ended"
    SUBMITTED = "submitted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a source, or to one item of it. `count` says how many were planned."""

    kind: EventKind
    source_id: str
    native_id: str | None = None
    outcome: Outcome | None = None
    code: str | None = None
    error: str | None = None
    count: int = 0
    kept: bool = False


Watch = Callable[[Event], None]


def unwatched(event: Event) -> None:
    """Nobody looks on."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the run of a source ended early; its checkpoint stays where it was."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What the run of one source came to.

    `fetched` counts answers of the source, `kept` captures added to the spool, `skipped` items that this run had
    settled before it was interrupted, `unreadable` items on which the adapter's reader failed, `records` what was read
    in the whole run, and `held` captures that are not sent because it broke a minimum.
    `changes` is what the source states otherwise than in its last good run, `breaches` every bound that was not kept.
    `joined` is True where another process made the run meanwhile.
    """

    source_id: str
    generation: int
    planned: int = 0
    fetched: int = 0
    kept: int = 0
    skipped: int = 0
    unreadable: int = 0
    records: int = 0
    held: int = 0
    changes: tuple[Change, ...] = ()
    breaches: tuple[Breach, ...] = ()
    outcomes: Mapping[Outcome, int] = field(default_factory=Counter)
    failure: Failure | None = None
    resumed: bool = False
    joined: bool = False
    stopped: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether nothing waits for a later run or for a person."""
        troubled = self.outcomes.get(Outcome.POISON, 0) + self.outcomes.get(Outcome.RETRY_AT, 0)
        return self.failure is None and not self.stopped and troubled + self.unreadable == 0
