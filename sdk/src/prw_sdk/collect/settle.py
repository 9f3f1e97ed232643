"""Bringing one target to its verdict: find what is known of it, fetch, judge, keep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from prw_base.faults import fault
from prw_sdk.adapter import Net, Target
from prw_sdk.collect.attempt import Attempt, Judge, Maker
from prw_sdk.collect.book import RunBook
from prw_sdk.collect.job import Means, RunLimits, SourceJob
from prw_sdk.collect.keeper import Judged, Work
from prw_sdk.collect.revisit import AskingNet, Revisit
from prw_sdk.collect.telling import Telling
from prw_sdk.spool.model import NEVER_SETTLED, Item, ItemKey, Run, Settling, Verdict, presentable

_RECENT = 5_000
"""Targets of this run that are remembered: more than are ever looked up before their turn."""


class Settler:
    """Settles the targets of one run."""

    def __init__(
        self, job: SourceJob, means: Means, limits: RunLimits, run: Run, telling: Telling
    ) -> None:
        self._means = means
        self._run = run
        self._telling = telling
        self._held = job.holds_back
        self._places = asyncio.Semaphore(limits.concurrency)
        maker = Maker(job.source, job.adapter, job.region, job.egress, job.net.redactor())
        self._attempt = Attempt(maker, limits.attempt_budget, means.clock)
        self._recent: dict[str, None] = {}
        self.book = RunBook(run, means.spool)

    async def find(self, targets: Sequence[Target]) -> list[Item | None]:
        """What the ledger holds of each target."""
        names = [presentable(target.native_id) for target in targets]
        ledger, run = self._means.spool.ledger, self._run
        found = await asyncio.to_thread(ledger.items, run.tenant, run.source_id, names)
        return [found.get(name) for name in names]

    async def settle(self, target: Target, found: Item | None, net: AskingNet) -> None:
        """Settle one target, unless this run has settled it; `found` is what the ledger held of it."""
        key = ItemKey(self._run.tenant, self._run.source_id, presentable(target.native_id))
        if self._was_met(key.native_id):
            # planned twice within what is looked up at once
            found = await asyncio.to_thread(self._means.spool.ledger.item, key)
        if found is not None and found.is_settled_in(self._run.generation, self._means.clock()):
            self._telling.item(found, skipped=True)
            return
        async with self._places:
            began = time.monotonic()
            own = self._net(key, found, net)
            wanting = partial(self._means.spool.wanting, key)
            judge = await self._attempt.at(target, own, _verdict(found), wanting)
            seconds = time.monotonic() - began
        work = Work(lambda: self._judged(judge, key, target, found), self.book)
        kept = await self._means.keeper.keep(work)
        fault("collect.after_keep")
        is_new = kept.applied and kept.settling.capture is not None
        item, skipped = kept.settling.item, not kept.applied
        self._telling.item(item, skipped=skipped, kept=is_new, seconds=seconds)

    def _net(self, key: ItemKey, found: Item | None, net: AskingNet) -> Net:
        if found is None or found.verdict.fingerprint is None:
            return net
        return Revisit(net, self._means.spool, key)

    def _judged(self, judge: Judge, key: ItemKey, target: Target, found: Item | None) -> Judged:
        said = judge()
        version = NEVER_SETTLED if found is None else found.version
        url = target.url.encode("utf-8", errors="replace").decode("utf-8")
        item = Item(key, url, said.verdict, version, self._run.generation, self._means.clock())
        return Judged(Settling(version, item, said.capture, self._held), said.bodies, said.reading)

    def _was_met(self, native_id: str) -> bool:
        if native_id in self._recent:
            return True
        self._recent[native_id] = None
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
        return False


def _verdict(found: Item | None) -> Verdict | None:
    return None if found is None else found.verdict
