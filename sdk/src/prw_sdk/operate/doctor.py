"""What is not as it should be in a spool: ghosts, orphans, runs that came to less than they planned, stale checkpoints,
poison, runs that never ended, captures that wait for a person.

A `serious` finding is one that nobody's next run mends by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from prw_sdk.spool.folder import Spool, TurnGivenUp
from prw_sdk.spool.looking import CheckpointSeen, RunSeen, Waiting
from prw_sdk.spool.model import DAMAGED, CaptureState, ItemKey, KeptCapture

STALE = timedelta(days=7)
"""A checkpoint that stands still for longer is told."""
_YOUNG = timedelta(hours=1)
# of each kind, one by one; the rest is a number
_NAMED = 50


class Trouble(StrEnum):
    """The kinds of findings."""

    GHOST = "ghost"
    LOST_BYTES = "lost_bytes"
    ORPHAN_BLOB = "orphan_blob"
    ESTIMATE = "estimate"
    STALE_CHECKPOINT = "stale_checkpoint"
    POISON = "poison"
    UNFINISHED_RUN = "unfinished_run"
    HELD = "held"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, how often, and what to do about it."""

    trouble: Trouble
    source_id: str | None
    count: int
    said: str
    remedy: str
    serious: bool = True
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class _Bytes:
    """What the comparison of blobs and captures found: files that no capture names, captures whose bytes are gone.

    `made_good` are the rows of those captures whose item has a newer capture that is whole.
    """

    orphans: Sequence[Path]
    lost: Sequence[KeptCapture]
    made_good: Set[int]

    def is_serious(self, capture: KeptCapture) -> bool:
        """Whether something is left to do about a capture whose bytes are gone."""
        return capture.state is not CaptureState.SUBMITTED and capture.row not in self.made_good

    def remedy(self, capture: KeptCapture) -> str:
        """What that is."""
        if self.is_serious(capture):
            return "`prw collect retry`, then `run`"
        sent = capture.state is CaptureState.SUBMITTED
        return f"nothing: {'they were sent' if sent else 'a newer capture of the item is whole'}"

    def refused(self) -> Counter[str]:
        """How many captures of each source were refused for damage that a newer capture has made good."""
        return Counter(
            one.key.source_id
            for one in self.lost
            if one.row in self.made_good and one.code == DAMAGED
        )


async def examine(
    spool: Spool, now: datetime, *, stale: timedelta = STALE, repair: bool = False
) -> list[Finding]:
    """Every finding. With `repair`, what can be mended without losing anything is mended first.

    That is: captures whose bytes are whole again may be sent, and files that no capture names are removed, once they
    are an hour old and no run of the spool goes on. Everything else waits for a person's decision.
    """
    mended = await asyncio.to_thread(spool.mend) if repair else 0
    seen = await asyncio.to_thread(_bytes, spool, now)
    removed = await _remove(spool, seen.orphans) if repair else 0
    looking = spool.looking
    runs = looking.last_runs()
    found = [
        *_ghosts(runs),
        *_estimates(runs),
        *_unfinished(spool, looking.unfinished_runs()),
        *_stale(looking.checkpoints(), now, stale),
        *_waiting(looking.waiting(), seen.refused()),
        *_lost(seen, mended),
        *_orphans(spool.folder, seen.orphans, removed),
    ]
    return sorted(found, key=lambda one: (not one.serious, one.trouble, one.source_id or ""))


def _ghosts(runs: Sequence[RunSeen]) -> Iterator[Finding]:
    for run in runs:
        if run.code is None and not run.planned and not run.settled and not run.kept:
            said = f"run {run.generation} ended at {run.finished_at:%Y-%m-%d %H:%M} with nothing to show"
            remedy = "look at the source and at the adapter's plan, then run again"
            yield Finding(Trouble.GHOST, run.source_id, 1, said, remedy)


def _estimates(runs: Sequence[RunSeen]) -> Iterator[Finding]:
    for run in runs:
        if run.planned is not None and run.settled < run.planned and run.code is None:
            said = f"run {run.generation} planned {run.planned} targets, {run.settled} are settled"
            remedy = "a target that was planned twice counts twice; else see `items`"
            missing = run.planned - run.settled
            yield Finding(Trouble.ESTIMATE, run.source_id, missing, said, remedy, serious=False)


_UNFINISHED = {
    True: ("and goes on", "nothing"),
    False: ("and was interrupted", "run again to resume"),
    None: ("and has not ended; only its user can see whether it goes on", "ask as that user"),
}


def _unfinished(spool: Spool, runs: Sequence[RunSeen]) -> Iterator[Finding]:
    for run in runs:
        is_running = spool.is_running(run.tenant, run.source_id)
        words, remedy = _UNFINISHED[is_running]
        said = f"run {run.generation} began at {run.started_at:%Y-%m-%d %H:%M} {words}"
        serious = is_running is False
        yield Finding(Trouble.UNFINISHED_RUN, run.source_id, 1, said, remedy, serious)


def _stale(
    checkpoints: Sequence[CheckpointSeen], now: datetime, stale: timedelta
) -> Iterator[Finding]:
    for one in checkpoints:
        if now - one.advanced_at <= stale:
            continue
        name = " ".join(filter(None, (one.adapter, one.partition)))
        said = f"the checkpoint of {name} stands still since {one.advanced_at:%Y-%m-%d %H:%M}"
        ended = one.run_ended_at is not None and one.run_ended_at > one.advanced_at
        remedy = "nothing, if the source has nothing new" if ended else "run the source again"
        yield Finding(Trouble.STALE_CHECKPOINT, one.source_id, 1, said, remedy, serious=not ended)


_WAITS = {
    "held": (
        "captures of a run that came to less than its source declares",
        "look at the source; `prw collect retry` lets them be sent all the same",
    ),
    "refused": ("captures that are not sent any more", "mend the cause, then `prw collect retry`"),
    "poison": (
        "items set aside after their last attempt",
        "mend the cause, then `prw collect retry`",
    ),
}


def _waiting(waiting: Sequence[Waiting], made_good: Mapping[str, int]) -> Iterator[Finding]:
    for one in waiting:
        left = one.count - (made_good.get(one.source_id, 0) if one.code == DAMAGED else 0)
        if left <= 0:
            continue
        words, remedy = _WAITS[one.state]
        said = words if one.code is None else f"{words}: {one.code}"
        yield Finding(Trouble(one.state), one.source_id, left, said, remedy)


def _lost(seen: _Bytes, mended: int) -> Iterator[Finding]:
    if mended:
        said, remedy = "captures whose bytes are whole again", "the next `push` sends them"
        yield Finding(Trouble.LOST_BYTES, None, mended, said, remedy, False, repaired=True)
    for capture in sorted(seen.lost, key=lambda one: not seen.is_serious(one))[:_NAMED]:
        moment = f"{capture.captured_at:%Y-%m-%d %H:%M}"
        said = f"the bytes of {capture.key.native_id} of {moment} are not whole"
        serious, source_id = seen.is_serious(capture), capture.key.source_id
        yield Finding(Trouble.LOST_BYTES, source_id, 1, said, seen.remedy(capture), serious)
    if len(seen.lost) > _NAMED:
        more, serious = len(seen.lost) - _NAMED, sum(map(seen.is_serious, seen.lost)) > _NAMED
        see = "see `status --verify`"
        yield Finding(Trouble.LOST_BYTES, None, more, "and more", see, serious)


def _orphans(folder: Path, orphans: Sequence[Path], removed: int) -> Iterator[Finding]:
    if not orphans:
        return
    names = ", ".join(str(path.relative_to(folder)) for path in orphans[:3])
    said = f"files that no capture names, as a crash leaves them: {names}"
    if removed:
        yield Finding(Trouble.ORPHAN_BLOB, None, removed, said, "removed", False, repaired=True)
    if removed < len(orphans):
        left = len(orphans) - removed
        remedy = "`doctor --repair` while nothing runs removes them"
        yield Finding(Trouble.ORPHAN_BLOB, None, left, said, remedy, serious=False)


def _bytes(spool: Spool, now: datetime) -> _Bytes:
    # files first: what is kept while we look is named by a capture by the time that these are read
    files = dict(_old_files(spool.folder / "blobs", now - _YOUNG))
    lost, made_good = [], set[int]()
    open_: dict[ItemKey, list[int]] = {}
    for capture in spool.ledger.captures():
        whole = True
        for part in json.loads(capture.body)["parts"]:
            files.pop(part["sha256"], None)
            whole = whole and spool.blobs.has(part["sha256"], part["bytes"])
        if whole:
            made_good.update(open_.pop(capture.key, ()))
        else:
            lost.append(capture)
            open_.setdefault(capture.key, []).append(capture.row)
    return _Bytes(sorted(files.values()), lost, made_good)


def _old_files(blobs: Path, before: datetime) -> Iterator[tuple[str, Path]]:
    for folder in blobs.iterdir() if blobs.is_dir() else ():
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.stat().st_mtime <= before.timestamp():
                yield path.name, path


async def _remove(spool: Spool, orphans: Sequence[Path]) -> int:
    """Remove files while every source's turn is ours, so that no run is about to name one of them."""
    try:
        async with AsyncExitStack() as turns:
            for tenant, source_id in spool.looking.sources():
                await turns.enter_async_context(_turn(spool, tenant, source_id))
            for path in orphans:
                path.unlink(missing_ok=True)
    except TurnGivenUp:
        return 0
    return len(orphans)


@asynccontextmanager
async def _turn(spool: Spool, tenant: str, source_id: str) -> AsyncIterator[None]:
    """The turn of a source; raises `TurnGivenUp` at once where a run has it."""
    at_once = asyncio.Event()
    at_once.set()
    async with spool.turn(tenant, source_id, lambda: None, at_once):
        yield
