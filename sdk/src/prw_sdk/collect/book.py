"""What a run has read so far, and what is made of it at its end.

The tally is persisted with the verdicts that it counts, so that a run which was killed is judged as one that was not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import MappingProxyType

from prw_base.canonical import canonical_json
from prw_sdk.account import Breach, Change, Profile, Tally, breaches, changes
from prw_sdk.adapter import Adapter, Bound, Measure
from prw_sdk.collect.reading import READ_FAILED, Reading
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Run, RunProfile, RunTally

_WHOLE = 0.5
"""A run over at least this share of the last good run's captures takes its place."""


class RunBook:
    """Counts the readings of one run."""

    def __init__(self, run: Run, spool: Spool) -> None:
        self._run = run
        self._tally = Tally()
        self._absent = 0
        stored = spool.ledger.tally(run)
        if stored is not None:
            self._tally.merge(Profile.from_json(json.loads(stored)))

    def count(self, reading: Reading) -> None:
        """Count one reading; one that failed tells nothing of the source."""
        if reading.code != READ_FAILED:
            self._tally.add(reading.account, reading.records)

    def row(self) -> RunTally:
        """Everything counted so far."""
        return RunTally(self._run, canonical_json(self._tally.profile().as_json()))

    def profile(self) -> Profile:
        """What the run is like so far."""
        return self._tally.profile()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a whole run comes to. `profile` is what the next one is compared with, None to leave it as it was."""

    profile: Profile
    changes: tuple[Change, ...] = ()
    breaches: tuple[Breach, ...] = ()
    keep: Profile | None = None

    @property
    def failures(self) -> tuple[Breach, ...]:
        """The minimums that were not kept."""
        return tuple(breach for breach in self.breaches if breach.is_failure)


def judge(
    adapter: Adapter, bounds: tuple[Bound, ...], before: RunProfile | None, now: Profile
) -> Judgement:
    """Hold a run against its bounds and against the last good run."""
    known = before is not None and before.version == adapter.version
    earlier = Profile.from_json(before.body) if known and before is not None else Profile()
    broken = breaches(bounds, now)
    keep = None if any(breach.is_failure for breach in broken) else _next_profile(earlier, now)
    return Judgement(now, changes(earlier, now), broken, keep)


def may_be_empty(bounds: tuple[Bound, ...]) -> bool:
    """Whether a bound says that a run of no records is one: a minimum of 0."""
    return any(bound.measure is Measure.RECORDS and bound.minimum == 0 for bound in bounds)


def has_records(before: RunProfile | None) -> bool:
    """Whether the last good run has read any record."""
    return before is not None and Profile.from_json(before.body).records > 0


def _next_profile(earlier: Profile, now: Profile) -> Profile | None:
    if not now.captures:
        return None
    if now.captures >= _WHOLE * earlier.captures:
        return now
    # a run over few pages knows nothing of the rest; what it met for the first time is told once
    new = {name: one for name, one in now.fields.items() if name not in earlier.fields}
    fields = MappingProxyType({**earlier.fields, **new}) if new else earlier.fields
    return replace(earlier, fields=fields)
