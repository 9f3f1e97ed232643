"""Pure rules of following: what is missing, what ends it, how long to wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from random import SystemRandom

from prw.errors import Code, PrwError
from prw_base.backoff import longest_wait
from prw_base.scope import Scope
from prw_product.apply.model import Delivery


@dataclass(frozen=True, slots=True)
class Stream:
    """A scope's history, as the control plane or a registration names it."""

    scope: Scope
    history_epoch: int


@dataclass(frozen=True, slots=True)
class Registered:
    """What a registration answered."""

    stream: Stream
    reported: int
    pruned_through: int


@dataclass(frozen=True, slots=True)
class Page:
    """Changes as they came, and the stream's cursor at that moment."""

    deliveries: tuple[Delivery, ...]
    cursor: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Positions that did not come, both ends included."""

    first: int
    last: int


def find_gaps(expected: int, positions: Iterable[int]) -> list[Gap]:
    """Holes between ``expected`` and the greatest of ``positions``."""
    gaps = []
    for position in sorted(set(positions)):
        if position > expected:
            gaps.append(Gap(expected, position - 1))
        expected = max(expected, position + 1)
    return gaps


class GapOpen(Exception):
    """Positions are missing and cannot be fetched now; they are asked for again, never skipped."""

    def __init__(self, gap: Gap) -> None:
        super().__init__(f"positions {gap.first} to {gap.last} are missing")


@dataclass(frozen=True, slots=True)
class Waits:
    """Exponential backoff, for ever: each wait is between a tenth of the step and all of it."""

    base: timedelta = timedelta(milliseconds=500)
    cap: timedelta = timedelta(seconds=30)

    def choose(self, failures: int) -> timedelta:
        """The wait before the next try after so many ``failures`` in a row, from 1."""
        return longest_wait(failures, self.base, self.cap) * SystemRandom().uniform(0.1, 1.0)


FINAL = frozenset(
    {
        Code.CURSOR_AHEAD,
        Code.CURSOR_PRUNED,
        Code.EPOCH_FENCED,
        Code.INVALID_TOKEN,
        Code.CREDENTIAL_REVOKED,
        Code.MISSING_SCOPE,
        Code.TENANT_SCOPE_DENIED,
        Code.PERMISSION_DENIED,
        Code.FORBIDDEN,
        Code.VALIDATION_FAILED,
    }
)
"""Asking again changes nothing: following ends, and an operator is told."""

RENEWABLE = frozenset({Code.INVALID_TOKEN, Code.CREDENTIAL_REVOKED, Code.MISSING_SCOPE})
"""Of these, what another token may change."""

REBUILDABLE = frozenset({Code.CURSOR_AHEAD, Code.CURSOR_PRUNED, Code.EPOCH_FENCED})
"""Following can never go on from what is here; a projection that is built anew can."""

_ADVICE = {
    Code.CURSOR_AHEAD: "this projection is ahead of the stream: run `prw product rebuild`",
    Code.CURSOR_PRUNED: "changes that this projection needs are gone: run `prw product rebuild`",
    Code.EPOCH_FENCED: "the history was restored: run `prw product rebuild`",
    Code.INVALID_TOKEN: "provision the product's client anew",
    Code.CREDENTIAL_REVOKED: "provision the product's client anew",
    Code.MISSING_SCOPE: "the product's client needs the scope changes:read",
}


def explain(error: PrwError, progress: int) -> PrwError:
    """``error`` as an operator should read it."""
    advice = _ADVICE.get(error.code)
    said = f"{error.message} (progress {progress}"
    return PrwError(error.code, f"{said}; {advice})" if advice else f"{said})", field=error.field)


def check_stream(told: Stream, scope: Scope, followed_epoch: int | None) -> None:
    """Refuse a stream that is not the one that is projected here; raises PrwError."""
    if told.scope != scope:
        bound = f"{told.scope.tenant_id}/{told.scope.catalog_id}"
        message = f"the credential is bound to {bound}, which is not projected here"
        raise PrwError(Code.TENANT_SCOPE_DENIED, message)
    if followed_epoch is not None and told.history_epoch != followed_epoch:
        message = f"the epoch is {told.history_epoch}, this projection is of {followed_epoch}"
        raise PrwError(Code.EPOCH_FENCED, message)


class Condition(StrEnum):
    """How following goes, as ``status`` shows it."""

    FOLLOWING = "following"
    WAITING = "waiting"
    """Trouble that may pass: it is tried again."""
    STOPPED = "stopped"
    """Trouble that an operator must end."""


@dataclass(slots=True)
class Standing:
    """How following goes, for health and status; written by the follower only."""

    connected: bool = False
    epoch: int | None = None
    progress: int = 0
    cursor: int = 0
    failures: int = 0
    since: datetime | None = None
    stopped: PrwError | None = None


def greatest(deliveries: Sequence[Delivery]) -> int:
    """The greatest position of a page that is not empty."""
    return max(delivery.position for delivery in deliveries)
