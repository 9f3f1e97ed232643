"""What a run tells while it goes on, and what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from prw.errors import TABLE, Code, PrwError
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
    PAUSED = "paused"
    """A host has asked for a pause: `host`, and the `seconds` for which it is asked nothing."""
    LEFT_OUT = "left_out"
    """A plugin, or an adapter of it, that the run goes without; of no source."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a source, or to one item of it.

    `count` says how many were planned, `host` who was asked for an item, and `seconds` how long that took, the wait for
    a turn included.
    """

    kind: EventKind
    source_id: str
    native_id: str | None = None
    outcome: Outcome | None = None
    code: str | None = None
    error: str | None = None
    count: int = 0
    kept: bool = False
    host: str | None = None
    seconds: float = 0.0


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


class RunOutcome(StrEnum):
    """How a run over all its sources ended: `PARTIAL` where a source failed, or something waits."""

    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """What a run came to for one source; `code` says why it ended early, `retryable` whether a later run may not."""

    source_id: str
    planned: int
    kept: int
    submitted: int
    put_off: int
    poison: int
    code: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run came to, as it is reported (if_heartbeat)."""

    started_at: datetime
    ended_at: datetime
    outcome: RunOutcome
    submitted: int
    sources: tuple[SourceSummary, ...]
    code: str | None = None
    retryable: bool = False


def summarise(
    reports: Sequence[SourceReport],
    submitted: Mapping[str, int],
    started_at: datetime,
    ended_at: datetime,
    trouble: PrwError | None = None,
) -> RunSummary:
    """The summary of a run. `trouble` is why sending stopped.

    Every source failed: FAILED; nothing failed and nothing waits: SUCCEEDED; else PARTIAL.
    """
    sources = tuple(_source_summary(report, submitted) for report in reports)
    failed = [one for one in sources if one.code is not None]
    if trouble is not None:
        code: str | None = trouble.code.value
        retryable = trouble.retryable
    else:
        code = failed[0].code if failed else None
        retryable = bool(failed) and failed[0].retryable
    clean = trouble is None and all(report.is_clean for report in reports)
    none = len(failed) == len(sources) and bool(sources)
    outcome = RunOutcome.FAILED if none else RunOutcome.PARTIAL
    return RunSummary(
        started_at,
        ended_at,
        RunOutcome.SUCCEEDED if clean else outcome,
        sum(submitted.values()),
        sources,
        code,
        retryable,
    )


def _source_summary(report: SourceReport, submitted: Mapping[str, int]) -> SourceSummary:
    failure = report.failure
    return SourceSummary(
        source_id=report.source_id,
        planned=report.planned,
        kept=report.kept,
        submitted=submitted.get(report.source_id, 0),
        put_off=report.outcomes.get(Outcome.RETRY_AT, 0),
        poison=report.outcomes.get(Outcome.POISON, 0),
        code=None if failure is None else failure.code,
        retryable=failure is not None and is_retryable(failure.code),
    )


_MAY_PASS = frozenset(
    {"TIMEOUT", "NETWORK", "TRUNCATED", "RATE_LIMITED", "HOST_BUSY", "ROBOTS_UNREACHABLE"}
    | {"CIRCUIT_OPEN", "UNDECODABLE", "BOT_CHALLENGE", "BROWSER_FAILED", "CHECKPOINT_CONFLICT"}
)


def is_retryable(code: str) -> bool:
    """Whether a later run of the same collector may succeed where one has ended with this code."""
    named = Code(code) if code in Code.__members__ else None
    passing = named is not None and TABLE[named].retryable
    return passing or code in _MAY_PASS or code.startswith("UPSTREAM_5")
