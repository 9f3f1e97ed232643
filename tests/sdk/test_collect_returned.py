"""Adapters that give back what is no part of their contract fail for a page or a source, by name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import cast

import pytest

from prw_sdk.adapter import Batch, Checkpoint, Fetched, Net, Source, Target
from prw_sdk.collect import SourceJob, collect
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import QUICK, page
from tests.sdk.running import item, kept, run

Shop = Callable[..., None]


class Giving(ListAdapter):
    """Gives `fetched` for page a, and `planned` before its own batches where that is not None."""

    def __init__(self, fetched: object = None, planned: object = None) -> None:
        self._fetched = fetched
        self._planned = planned

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Its own batches, after what it was told to give."""
        if self._planned is not None:
            yield cast(Batch, self._planned)
        async for batch in super().plan(source, checkpoint, net):
            yield batch

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """What it was told to give for page a."""
        fetched = await super().fetch(target, net)
        return cast(Fetched, self._fetched) if target.native_id == "a" else fetched


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "fetch gave None where Fetched belongs"),
        ("page", "fetch gave 'page' where Fetched belongs"),
        (Fetched(cast(tuple[()], 5)), "fetch gave 5 where a tuple of Part belongs"),
        (Fetched(cast(tuple[()], ("x",))), "fetch gave 'x' where Part belongs"),
        (Fetched(()), "fetch returned parts with the roles []: each needs its own"),
    ],
)
async def test_a_fetch_that_gives_something_else_fails_its_page_alone(
    shop: Shop, job: SourceJob, spool: Spool, given: object, told: str
) -> None:
    """Put off as the adapter's error, in words that name what was given; the other page is kept."""
    shop(a=page("A"), b=page("B"))
    report = await run(replace(job, adapter=Giving(fetched=given)), spool)
    assert kept(spool) == ["b"]
    assert report.outcomes[Outcome.RETRY_AT] == 1
    verdict = item(spool, "a").verdict
    assert (verdict.code, verdict.error) == ("ADAPTER_ERROR", told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (5, "plan gave 5 where Batch belongs"),
        (Batch(cast(tuple[()], 5)), "plan gave 5 where a tuple of Target belongs"),
        (Batch(cast(tuple[()], ("a",))), "plan gave 'a' where Target belongs"),
        (Batch((Target(cast(str, 5), "http://a"),)), "plan gave 5 where a native_id (str) belongs"),
        (Batch((Target("a", cast(str, None)),)), "plan gave None where a url (str) belongs"),
        (Batch((), cast(Checkpoint, {"at": 1})), "plan gave {'at': 1} where Checkpoint belongs"),
    ],
)
async def test_a_plan_that_gives_something_else_fails_its_source_alone(
    shop: Shop, job: SourceJob, spool: Spool, given: object, told: str
) -> None:
    """The other source of the run is collected whole."""
    shop(b=page("B"))
    wrong = replace(job, adapter=Giving(planned=given))
    other = replace(job, source=replace(job.source, source_id="src_other"))
    reports = {one.source_id: one for one in await collect([wrong, other], spool, QUICK)}
    failed = reports[job.source.source_id].failure
    assert failed is not None
    assert (failed.code, failed.message) == ("ADAPTER_ERROR", told)
    assert reports["src_other"].failure is None
    assert reports["src_other"].outcomes == {Outcome.STORED: 1}
