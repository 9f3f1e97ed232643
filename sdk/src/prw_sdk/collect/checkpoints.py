"""Where the checkpoints of a run are kept: a port with one implementation here, over the spool.

A collector that keeps nothing between runs is given another one, which asks the resolver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CheckpointKey, Deferred, SavedCheckpoint


class CheckpointStore(Protocol):
    """Checkpoints, advanced by compare-and-set only (replay rule 7)."""

    @property
    def keeps_deferred(self) -> bool:
        """Whether `advance` wants what was put off, since nobody else keeps it between runs."""
        ...

    async def load(self, key: CheckpointKey) -> SavedCheckpoint:
        """The persisted checkpoint; revision 0 and an empty state where there is none."""
        ...

    async def advance(
        self,
        expected: SavedCheckpoint,
        state: Mapping[str, object],
        deferred: Sequence[Deferred],
        now: datetime,
    ) -> SavedCheckpoint:
        """Persist the next state, if the checkpoint is still the one that the run had loaded.

        `deferred` is everything of the source that is put off or set aside. Raises `PrwError` CHECKPOINT_CONFLICT with
        the persisted winner in its details.
        """
        ...


class SpoolCheckpoints:
    """The checkpoints of a spool, whose ledger holds what was put off."""

    keeps_deferred = False

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    async def load(self, key: CheckpointKey) -> SavedCheckpoint:
        """The persisted checkpoint."""
        return await asyncio.to_thread(self._spool.checkpoints.load, key)

    async def advance(
        self,
        expected: SavedCheckpoint,
        state: Mapping[str, object],
        deferred: Sequence[Deferred],
        now: datetime,
    ) -> SavedCheckpoint:
        """Persist the next state, or raise CHECKPOINT_CONFLICT."""
        return await asyncio.to_thread(self._spool.checkpoints.advance, expected, state, now)
