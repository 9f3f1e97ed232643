"""The values of the spool, and the pure rules about what an item becomes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from prw_base.backoff import longest_wait

LOCAL_TENANT = "local"
"""Whose captures are those that were collected before any resolver was known."""

NEVER_SETTLED = 0
"""The version of an item that has no row yet."""

_FIRST_RETRY = timedelta(minutes=1)
_LAST_RETRY = timedelta(hours=24)
CLOCK_STEP = timedelta(hours=1)
"""What was noted further ahead of the present was noted by a clock that was wrong and has been set back since."""

DAMAGED = "EVIDENCE_DAMAGED"
"""Why a capture is refused before it is sent: its bytes are not whole any more."""

_LONGEST_ERROR = 1000
_NO_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

LONGEST_NATIVE_ID = 2_000
"""Bytes of a target's id: what is known by it stands in an index of the resolver's database."""


class Outcome(StrEnum):
    """What became of an item. All but `RETRY_AT` are terminal; `POISON` waits for a person."""

    STORED = "stored"
    UNCHANGED = "unchanged"
    ABSENT = "absent"
    REJECTED = "rejected"
    RETRY_AT = "retry_at"
    POISON = "poison"


class CaptureState(StrEnum):
    """How far a kept capture has come; `REFUSED` is the resolver's answer, and waits for a person.

    `HELD` is not sent before its run is judged: its source says what a run must come to at least.
    """

    HELD = "held"
    KEPT = "kept"
    SUBMITTED = "submitted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ItemKey:
    """The stable identity of a source item; unique in the ledger."""

    tenant: str
    source_id: str
    native_id: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one attempt at an item came to.

    `code` is a stable upper-case reason, `error` a sanitised sentence, `fingerprint` a digest of everything that a
    capture of the item would hold; `attempts` counts failed attempts in a row.
    """

    outcome: Outcome
    code: str | None = None
    error: str | None = None
    retry_at: datetime | None = None
    fingerprint: str | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the ledger. `version` grows with every verdict; `generation` is the run that gave the last one."""

    key: ItemKey
    url: str
    verdict: Verdict
    version: int
    generation: int
    updated_at: datetime

    def is_settled_in(self, generation: int, now: datetime) -> bool:
        """Whether that run, or a later one, has nothing more to do for this item now."""
        if self.verdict.outcome is Outcome.POISON:
            return True
        if self.verdict.outcome is Outcome.RETRY_AT:
            waits = self.verdict.retry_at is not None and self.verdict.retry_at > now
            return waits and self.updated_at <= now + CLOCK_STEP
        return self.generation >= generation


@dataclass(frozen=True, slots=True)
class Run:
    """One generation of a source's plan; `resumed` where an earlier process left it unfinished."""

    tenant: str
    source_id: str
    generation: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class NewCapture:
    """A capture about to be kept: its identity in time, its canonical JSON, and what was read of it.

    `reading` is what `prw_sdk.spool.readings.encode` wrote, by that `version` of the adapter; None where nothing was.
    """

    captured_at: datetime
    body: bytes
    reading: bytes | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class Settling:
    """A verdict about to be given, on the version of the item that it was formed on, with its capture."""

    expected: int
    item: Item
    capture: NewCapture | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class RunTally:
    """What an unfinished run has read so far, as canonical JSON; kept together with the verdicts that it counts."""

    run: Run
    body: bytes


@dataclass(frozen=True, slots=True)
class RunProfile:
    """What a good run was like, by that version of its adapter, as JSON values."""

    adapter: str
    version: str
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: how many targets it planned, and the code of its failure, if any.

    With `release` what the run found may be sent, without it what was held back stays `HELD`. `profile` is kept as
    that of the last good run.
    """

    planned: int = 0
    code: str | None = None
    release: bool = True
    profile: RunProfile | None = None


@dataclass(frozen=True, slots=True)
class KeptCapture:
    """A capture in the spool. `row` orders captures by when they were kept."""

    row: int
    key: ItemKey
    captured_at: datetime
    body: bytes
    state: CaptureState
    receipt_id: str | None = None
    code: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """A checkpoint names adapter, source and partition."""

    tenant: str
    source_id: str
    adapter: str
    partition: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """An item that a checkpoint has passed although it is not done: put off (`RETRY_AT`) or set aside (`POISON`)."""

    native_id: str
    url: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A checkpoint as it is persisted; `revision` is 0 where there is none yet.

    `deferred` is what it has passed undone, as far as that is not in the ledger of the same spool.
    """

    key: CheckpointKey
    revision: int
    state: Mapping[str, object]
    deferred: tuple[Deferred, ...] = ()


def after_failure(
    failed: Verdict,
    earlier: Verdict | None,
    budget: int,
    wait: timedelta | None,
    now: datetime,
    *,
    asked: bool = True,
) -> Verdict:
    """Put an item off until a time that grows with each failure, or set it aside once its budget is spent.

    An item that was not even `asked` for spends nothing: its host's outage poisons no item.
    """
    attempts = asked + (0 if earlier is None else earlier.attempts)
    fingerprint = None if earlier is None else earlier.fingerprint
    noted = replace(failed, attempts=attempts, fingerprint=fingerprint)
    if asked and attempts >= budget:
        return replace(noted, outcome=Outcome.POISON, retry_at=None)
    backoff = longest_wait(attempts, _FIRST_RETRY, _LAST_RETRY)
    floor = wait if wait is not None else timedelta()
    return replace(noted, outcome=Outcome.RETRY_AT, retry_at=now + max(backoff, floor))


def unfit_id(native_id: str) -> str | None:
    """Why no target can be known by this id, or None: the resolver would refuse what it is known by."""
    if not native_id:
        return "its id is empty"
    if len(native_id.encode("utf-8", errors="replace")) > LONGEST_NATIVE_ID:
        return f"its id has more than {LONGEST_NATIVE_ID} bytes"
    if _NO_TEXT.search(native_id):
        return "its id holds a control character or half a character"
    return None


def presentable(text: str) -> str:
    """A text that can be written down: what cannot stand in one is replaced, and a digest keeps it apart."""
    if unfit_id(text) is None:
        return text
    digest = hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:16]
    return f"{_NO_TEXT.sub(chr(0xFFFD), text)[:200]}~{digest}"


def sanitised(message: str) -> str:
    """An error as one line of bounded length, with nothing unprintable in it."""
    line = " ".join(message.split())
    return "".join(c for c in line if c.isprintable())[:_LONGEST_ERROR]


def to_text(moment: datetime) -> str:
    """A moment as the ledger keeps it: UTC with microseconds, so that text order is time order."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """The moment of a ledger's text."""
    return datetime.fromisoformat(text)
