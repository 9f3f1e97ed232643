"""How far the plan of a run has come: its checkpoints, and what they pass undone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from prw_base.canonical import canonical_json
from prw_base.faults import fault
from prw_sdk.adapter import Checkpoint
from prw_sdk.collect.job import Means
from prw_sdk.collect.reading import foreign
from prw_sdk.spool.model import (
    NEVER_SETTLED,
    CheckpointKey,
    Deferred,
    Item,
    ItemKey,
    Outcome,
    Run,
    SavedCheckpoint,
    Settling,
)

_MOST_DEFERRED = 10_001
"""One more than a checkpoint keeps, so that a store can tell that not all are kept."""


class Progress:
    """The checkpoints of one run, by partition.

    Where captures are held until the run is judged (`holds`), so is every move of a checkpoint: it is persisted by
    `confirm` once they are let go, and lost with the run otherwise, so that nothing held is passed (replay rule 4).
    """

    def __init__(self, means: Means, run: Run, adapter: str, *, holds: bool = False) -> None:
        self._means = means
        self._run = run
        self._adapter = adapter
        self._holds = holds
        self._saved: dict[str, SavedCheckpoint] = {}
        self._moves: dict[str, Mapping[str, object]] = {}
        self.continues = False
        """Whether the plan began at a checkpoint."""

    async def start(self) -> Checkpoint | None:
        """Where the plan begins; what an earlier checkpoint passed undone is taken into the ledger first."""
        saved = await self._load("")
        self.continues = saved.revision > 0
        return Checkpoint(saved.state) if saved.revision else None

    async def advance(self, reached: Checkpoint) -> bool:
        """Persist how far the plan has come; False where that is known, or held.

        Raises `PrwError` CHECKPOINT_CONFLICT.
        """
        with foreign("a checkpoint of the plan"):
            canonical_json(reached.state)
        if self._holds:
            self._moves[reached.partition] = reached.state
            return False
        return await self._advance(reached.partition, reached.state)

    async def confirm(self) -> bool:
        """Persist the moves that were held; False where there is none. Raises `PrwError` CHECKPOINT_CONFLICT."""
        moved = [await self._advance(*move) for move in self._moves.items()]
        self._moves.clear()
        return any(moved)

    async def finish(self) -> None:
        """Persist what became of items that an earlier run had put off, also where the plan came no further."""
        saved = await self._load("")
        if self._means.checkpoints.keeps_deferred and saved.revision:
            await self._advance("", saved.state)

    async def _advance(self, partition: str, state: Mapping[str, object]) -> bool:
        expected, store = await self._load(partition), self._means.checkpoints
        deferred = await asyncio.to_thread(self._deferred) if store.keeps_deferred else ()
        known = expected.revision and dict(expected.state) == dict(state)
        if known and _told(deferred) == _told(expected.deferred):
            return False
        fault("collect.before_checkpoint")
        now = self._means.clock()
        self._saved[partition] = await store.advance(expected, state, deferred, now)
        fault("collect.after_checkpoint")
        return True

    async def _load(self, partition: str) -> SavedCheckpoint:
        if partition not in self._saved:
            key = CheckpointKey(self._run.tenant, self._run.source_id, self._adapter, partition)
            saved = self._saved[partition] = await self._means.checkpoints.load(key)
            if saved.deferred:
                await asyncio.to_thread(self._adopt, saved)
        return self._saved[partition]

    def _deferred(self) -> tuple[Deferred, ...]:
        found = self._means.spool.ledger.deferred(
            self._run.tenant, self._run.source_id, _MOST_DEFERRED
        )
        return tuple(Deferred(item.key.native_id, item.url, item.verdict) for item in found)

    def _adopt(self, saved: SavedCheckpoint) -> None:
        """Take over what another spool's run put off; an item that this ledger knows stays as it is."""
        run, now = self._run, self._means.clock()
        self._means.spool.ledger.settle_all(
            [
                Settling(
                    NEVER_SETTLED,
                    Item(
                        ItemKey(run.tenant, run.source_id, one.native_id),
                        one.url,
                        one.verdict,
                        NEVER_SETTLED,
                        max(run.generation - 1, 0),
                        now,
                    ),
                )
                for one in saved.deferred
            ]
        )


def _told(deferred: Sequence[Deferred]) -> set[tuple[str, Outcome, int, datetime | None]]:
    """What there is to tell apart in what is put off."""
    return {
        (one.native_id, one.verdict.outcome, one.verdict.attempts, one.verdict.retry_at)
        for one in deferred
    }
