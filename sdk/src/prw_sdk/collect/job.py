"""What a run is given: its source and adapter, its limits, and what it keeps things in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from prw_sdk.adapter import Adapter, Bound, Source
from prw_sdk.collect.attempt import utc_now
from prw_sdk.collect.checkpoints import CheckpointStore, SpoolCheckpoints
from prw_sdk.collect.keeper import Keeper
from prw_sdk.evidence import Egress, Region
from prw_sdk.fetch.http import NetConfig
from prw_sdk.fetch.polite import Politeness
from prw_sdk.spool.folder import Spool


@dataclass(frozen=True, slots=True)
class SourceJob:
    """One source to run: its adapter, how it is reached, and what a run of it must come to.

    `bounds` come on top of the adapter's own. Unless `may_be_empty`, a run that finds nothing is a failure.
    """

    tenant: str
    source: Source
    adapter: Adapter
    net: NetConfig
    region: Region = Region()
    egress: Egress = Egress()
    bounds: tuple[Bound, ...] = ()
    may_be_empty: bool = False

    @property
    def all_bounds(self) -> tuple[Bound, ...]:
        """Those of the adapter and those of the source."""
        return (*self.adapter.bounds, *self.bounds)

    @property
    def holds_back(self) -> bool:
        """Whether captures are held until the run is judged: some bound has a minimum."""
        return any(bound.minimum is not None for bound in self.all_bounds)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Targets of one source fetched at once, and failed attempts before an item is set aside.

    As many targets again may be on their way to the disk.
    """

    concurrency: int = 8
    attempt_budget: int = 5
    manners: Politeness = Politeness()


@dataclass(frozen=True, slots=True)
class Means:
    """What a run keeps things in: a spool, what writes to it, where checkpoints are, and whose time it goes by."""

    spool: Spool
    keeper: Keeper
    checkpoints: CheckpointStore
    clock: Callable[[], datetime] = utc_now

    @classmethod
    def over(
        cls,
        spool: Spool,
        checkpoints: CheckpointStore | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> Means:
        """Those over a spool, checkpoints included unless they are somewhere else."""
        return cls(spool, Keeper(spool), checkpoints or SpoolCheckpoints(spool), clock)
