"""Runs of one source, and what its spool then holds."""

from __future__ import annotations

from datetime import datetime

from prw_sdk.collect import RunLimits, SourceJob, collect
from prw_sdk.collect.job import Means
from prw_sdk.collect.run import SourceRun
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.polite import HostGates, Politeness
from prw_sdk.report import SourceReport
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Item, ItemKey
from tests.sdk.jobs import QUICK


async def run(job: SourceJob, spool: Spool, limits: RunLimits = QUICK) -> SourceReport:
    """One run of one source."""
    (report,) = await collect([job], spool, limits)
    return report


async def run_at(job: SourceJob, spool: Spool, now: datetime) -> SourceReport:
    """One run with a clock of its own."""
    net = HttpNet(job.net, HostGates(Politeness(1000, 16)))
    try:
        means = Means.over(spool, clock=lambda: now)
        return await SourceRun(job, means, QUICK).go(net)
    finally:
        await net.aclose()


def item(spool: Spool, name: str) -> Item:
    """What the ledger says of an item."""
    found = spool.ledger.item(ItemKey("ten_synth_a", "src_list", name))
    assert found is not None
    return found


def kept(spool: Spool) -> list[str]:
    """The items of all captures, oldest first."""
    return [capture.key.native_id for capture in spool.ledger.captures()]
