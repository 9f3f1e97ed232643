"""Bounds on a whole run: what an adapter or a source's settings say it must come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from prw_sdk.account.profile import Profile
from prw_sdk.adapter import Bound, Measure


@dataclass(frozen=True, slots=True)
class Breach:
    """A bound that a run did not keep. `is_failure` where it was a minimum: the run failed, nothing of it is sent."""

    bound: Bound
    value: Decimal
    is_failure: bool

    def __str__(self) -> str:
        what = "records" if self.bound.attribute is None else f"share with {self.bound.attribute}"
        limit = self.bound.minimum if self.is_failure else self.bound.maximum
        side = "at least" if self.is_failure else "at most"
        return f"{what}: {_short(self.value)}, where {side} {limit} was expected"


def breaches(bounds: Iterable[Bound], profile: Profile) -> tuple[Breach, ...]:
    """Every bound that the run did not keep; a share of no records at all keeps every bound."""
    return tuple(breach for bound in bounds for breach in _of_bound(bound, profile))


def found_nothing(before: Profile | None, now: Profile) -> bool:
    """Whether a run read nothing although the last good one read something: that is no success."""
    return before is not None and before.records > 0 and now.records == 0


def _of_bound(bound: Bound, profile: Profile) -> Iterator[Breach]:
    value = _measured(bound, profile)
    if value is None:
        return
    if bound.minimum is not None and value < bound.minimum:
        yield Breach(bound, value, is_failure=True)
    if bound.maximum is not None and value > bound.maximum:
        yield Breach(bound, value, is_failure=False)


def _measured(bound: Bound, profile: Profile) -> Decimal | None:
    if bound.measure is Measure.RECORDS:
        return Decimal(profile.records)
    return profile.share(bound.attribute or "")


def _short(value: Decimal) -> str:
    return f"{value.quantize(Decimal('0.0001')).normalize():f}"
