"""Checkpoints at the resolver, for collectors that keep nothing between runs.

Everything that a run has found is submitted before a checkpoint passes it, and what was put off, set aside or refused
goes with the checkpoint, so that nothing is passed over (replay rules 3, 4 and 13).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from prw.collector.v1 import checkpoint_service_pb2 as messages
from prw.collector.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json
from prw_base.client import Retry, call
from prw_base.faults import fault
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import (
    CaptureState,
    CheckpointKey,
    Deferred,
    ItemKey,
    Outcome,
    SavedCheckpoint,
    Verdict,
)
from prw_sdk.uplink.messages import to_timestamp

_DEADLINE = timedelta(seconds=5)
_MOST = 10_000
_OUTCOMES: Mapping[Outcome, messages.DeferredOutcome.ValueType] = {
    Outcome.RETRY_AT: messages.DEFERRED_OUTCOME_RETRY_AT,
    Outcome.POISON: messages.DEFERRED_OUTCOME_POISON,
}


@dataclass(frozen=True, slots=True)
class _Reached:
    """A checkpoint that waits for the judgement of its run."""

    expected: SavedCheckpoint
    state: Mapping[str, object]
    deferred: Sequence[Deferred]


class ResolverCheckpoints:
    """The checkpoints that a resolver keeps; a store for `prw_sdk.collect`.

    `submit` sends what the spool holds, and raises where not everything of a source can be sent.
    """

    keeps_deferred = True

    def __init__(
        self,
        stub: CheckpointServiceStub,
        spool: Spool,
        submit: Callable[[str], Awaitable[object]],
        retry: Retry,
    ) -> None:
        self._stub = stub
        self._spool = spool
        self._submit = submit
        self._retry = retry
        self._waiting: dict[CheckpointKey, _Reached] = {}

    async def load(self, key: CheckpointKey) -> SavedCheckpoint:
        """The persisted checkpoint with what it passed undone; revision 0 and an empty state where there is none."""
        request = messages.GetCheckpointRequest(key=_key(key))
        answer = await call(self._stub.GetCheckpoint, request, _DEADLINE, self._retry)
        return _saved(key, answer.checkpoint)

    async def advance(
        self,
        expected: SavedCheckpoint,
        state: Mapping[str, object],
        deferred: Sequence[Deferred],
        now: datetime,
    ) -> SavedCheckpoint:
        """Submit what was found, then persist the next state, by compare-and-set (replay rule 7).

        Where captures are held until their run is judged, the checkpoint waits for that too: see `settle`. Raises
        `PrwError` CHECKPOINT_CONFLICT with the persisted winner in its details.
        """
        key = expected.key
        await self._submit(key.source_id)
        if key in self._waiting or await asyncio.to_thread(self._holds_back, key.source_id):
            first = self._waiting[key].expected if key in self._waiting else expected
            self._waiting[key] = _Reached(first, state, deferred)
            revision = expected.revision + 1
            return SavedCheckpoint(key, revision, state, tuple(deferred))
        return await self._persist(_Reached(expected, state, deferred))

    async def settle(self) -> None:
        """After the runs: advance what waited for a judgement, unless captures of its source are still held."""
        for key, reached in list(self._waiting.items()):
            if await asyncio.to_thread(self._holds_back, key.source_id):
                continue
            await self._submit(key.source_id)
            await self._persist(reached)
            del self._waiting[key]

    async def sync(self, key: CheckpointKey) -> None:
        """Make the spool's checkpoint and the resolver's the same; the resolver's counts.

        It is given the spool's where it is still the one that this spool's is based on. Else somebody else has advanced
        it meanwhile, and the spool takes it.
        """
        local = self._spool.checkpoints
        ours = await asyncio.to_thread(local.load, key)
        known = await asyncio.to_thread(local.synced, key)
        theirs = await self.load(key)
        same = canonical_json(theirs.state) == canonical_json(ours.state)
        if theirs.revision == known and not (same and known):
            items = await asyncio.to_thread(
                self._spool.ledger.deferred, key.tenant, key.source_id, _MOST + 1
            )
            deferred = [Deferred(one.key.native_id, one.url, one.verdict) for one in items]
            theirs = await self._persist(_Reached(theirs, ours.state, deferred))
        elif not same:
            now = datetime.now(UTC)
            await asyncio.to_thread(local.advance, ours, theirs.state, now)
        await asyncio.to_thread(local.note_synced, key, theirs.revision)

    async def revive(self, key: CheckpointKey, native_id: str | None, now: datetime) -> int:
        """Let what was put off or set aside be tried by the next run, with a new budget; how many items that were."""
        saved = await self.load(key)
        after, revived = list(saved.deferred), 0
        for at, one in enumerate(saved.deferred):
            if native_id in (None, one.native_id):
                said = replace(one.verdict, outcome=Outcome.RETRY_AT, retry_at=now, attempts=0)
                after[at] = replace(one, verdict=said)
                revived += 1
        if revived:
            await self._persist(_Reached(saved, saved.state, after))
        return revived

    def _holds_back(self, source_id: str) -> bool:
        return self._spool.ledger.states().get((source_id, CaptureState.HELD), 0) > 0

    async def _persist(self, reached: _Reached) -> SavedCheckpoint:
        key, expected = reached.expected.key, reached.expected
        refused = await asyncio.to_thread(self._refused, key)
        deferred = (*reached.deferred, *refused)
        if len(deferred) > _MOST:
            raise PrwError(
                Code.VALIDATION_FAILED,
                f"{len(deferred)} items of {key.source_id} are put off or set aside, more than a checkpoint keeps "
                f"({_MOST}): look at the source, or collect it with a spool that is kept",
                field="deferred",
            )
        request = messages.AdvanceCheckpointRequest(
            key=_key(key),
            expected_revision=expected.revision,
            state=canonical_json(reached.state).decode(),
            deferred=[_deferred(one) for one in deferred],
        )
        try:
            answer = await call(self._stub.AdvanceCheckpoint, request, _DEADLINE, self._retry)
        except PrwError as error:
            return await self._perhaps_ours(reached, error)
        fault("uplink.after_advance")
        return _saved(key, answer.checkpoint)

    async def _perhaps_ours(self, reached: _Reached, error: PrwError) -> SavedCheckpoint:
        """The answer to an advance may have been lost, and its second try meets our own state: that is no conflict."""
        if error.code is not Code.CHECKPOINT_CONFLICT:
            raise error
        found = await self.load(reached.expected.key)
        ours = found.revision == reached.expected.revision + 1
        if not ours or canonical_json(found.state) != canonical_json(reached.state):
            raise error
        return found

    def _refused(self, key: CheckpointKey) -> list[Deferred]:
        """Captures that the resolver will not take wait for a person, at the resolver since this spool is not kept."""
        found = []
        for kept in self._spool.looking.refused(key.tenant, key.source_id, _MOST):
            item = self._spool.ledger.item(ItemKey(key.tenant, key.source_id, kept.key.native_id))
            if item is not None and item.verdict.outcome not in _OUTCOMES:
                verdict = Verdict(Outcome.POISON, kept.code, kept.error, attempts=1)
                found.append(Deferred(kept.key.native_id, item.url, verdict))
        return found


def _key(key: CheckpointKey) -> messages.CheckpointKey:
    return messages.CheckpointKey(
        source_id=key.source_id, adapter=key.adapter, partition=key.partition
    )


def _saved(key: CheckpointKey, found: messages.Checkpoint) -> SavedCheckpoint:
    state = json.loads(found.state) if found.revision else {}
    return SavedCheckpoint(key, found.revision, state, tuple(map(_taken, found.deferred)))


def _deferred(one: Deferred) -> messages.DeferredItem:
    said = one.verdict
    return messages.DeferredItem(
        native_record_id=one.native_id,
        url=one.url,
        outcome=_OUTCOMES[said.outcome],
        code=(said.code or "")[:64],
        error=(said.error or "")[:1000],
        attempts=said.attempts,
        retry_at=None if said.retry_at is None else to_timestamp(said.retry_at),
    )


def _taken(one: messages.DeferredItem) -> Deferred:
    retry = one.outcome == messages.DEFERRED_OUTCOME_RETRY_AT
    retry_at = one.retry_at.ToDatetime(UTC) if one.HasField("retry_at") else datetime.now(UTC)
    verdict = Verdict(
        Outcome.RETRY_AT if retry else Outcome.POISON,
        one.code or None,
        one.error or None,
        retry_at=retry_at if retry else None,
        attempts=one.attempts,
    )
    return Deferred(one.native_record_id, one.url, verdict)
