"""A run held against its bounds and its last answers, from the first request to what may be sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from decimal import Decimal

from prw_sdk.adapter import Batch, Bound, Checkpoint, Fetched, Measure, Net, Source, Target
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import Event, EventKind
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CheckpointKey, Outcome
from tests.sdk import jobs
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.running import run

Shop = Callable[..., None]


def sendable(spool: Spool) -> list[str]:
    """The items whose captures may be sent."""
    return sorted(one.key.native_id for one in spool.ledger.kept())


async def test_a_run_below_its_minimum_fails_and_sends_nothing_until_a_good_one_finds_the_same(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """What the bad run held and the good one confirms is sent with it."""
    shop(a=page("A"), b=answer(b"no title"))
    bound = replace(job, bounds=(Bound(Measure.RECORDS, minimum=Decimal(2)),))
    bad = await run(bound, spool)
    assert bad.failure is not None
    assert (bad.failure.code, bad.held, sendable(spool)) == ("ASSERTION_BREACHED", 2, [])
    site.serve("/p/b", page("B"))
    good = await run(bound, spool)
    assert (good.failure, good.held, sendable(spool)) == (None, 0, ["a", "b"])


async def test_a_run_above_its_maximum_warns_and_is_sent(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """In its report and as an event."""
    shop(a=page("A"), b=page("B"))
    seen: list[Event] = []
    bound = replace(job, bounds=(Bound(Measure.RECORDS, maximum=Decimal(1)),))
    (report,) = await collect([bound], spool, QUICK, watch=seen.append)
    assert (report.is_clean, len(report.breaches), sendable(spool)) == (True, 1, ["a", "b"])
    assert [one.code for one in seen if one.kind is EventKind.BREACHED] == ["MAXIMUM"]


async def test_a_run_that_finds_nothing_is_no_success_unless_that_may_be(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """An empty list and a broken one look the same."""
    shop()
    report = await run(job, spool)
    assert report.failure is not None
    assert report.failure.code == "FOUND_NOTHING"
    assert (await run(replace(job, may_be_empty=True), spool)).failure is None


async def test_an_observer_that_raises_ends_nothing(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Not even the item that it was told of."""

    def fail(event: Event) -> None:
        raise RuntimeError("a defect of the observer")

    shop(a=page("A"))
    (report,) = await collect([job], spool, QUICK, watch=fail)
    assert (report.kept, report.failure) == (1, None)


class Growing(ListAdapter):
    """A list that only grows: what its checkpoint has passed is not looked at again."""

    lists_everything = False

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """The lines that are new."""
        done = 0 if checkpoint is None else int(str(checkpoint.state["done"]))
        async for batch in super().plan(source, None, net):
            assert batch.then is not None
            if int(str(batch.then.state["done"])) > done:
                yield batch


class Whole(Growing):
    """The same, said to name everything that there is each time."""

    lists_everything = True


def reached(spool: Spool) -> object:
    """How far the plan has come."""
    key = CheckpointKey("ten_synth_a", "src_list", "list")
    return spool.checkpoints.load(key).state.get("done")


async def test_no_checkpoint_passes_what_a_bad_run_held(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """Replay rule 4: it moves as its captures are let go, so that the next run asks for them again."""
    bounds = (Bound(Measure.RECORDS, minimum=Decimal(2)),)
    job = replace(jobs.list_job(site, Growing(), batch=1), bounds=bounds)
    shop(a=page("A"), b=answer(b"no title"))
    bad = await run(job, spool)
    assert (bad.held, sendable(spool), reached(spool)) == (2, [], None)
    site.serve("/p/b", page("B"))
    seen: list[Event] = []
    (good,) = await collect([job], spool, QUICK, watch=seen.append)
    assert (good.failure, sendable(spool), reached(spool)) == (None, ["a", "b"], 2)
    assert [one.kind for one in seen].count(EventKind.CHECKPOINT) == 1


async def test_a_run_that_finds_nothing_new_after_its_checkpoint_is_one(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """Where an earlier run has found something, and the adapter does not list everything each time."""
    job = jobs.list_job(site, Growing(), batch=1)
    shop(a=page("A"))
    assert (await run(job, spool)).failure is None
    nothing_new = await run(job, spool)
    assert (nothing_new.planned, nothing_new.failure) == (0, None)
    whole = await run(jobs.list_job(site, Whole(), batch=1), spool)
    assert whole.failure is not None
    assert whole.failure.code == "FOUND_NOTHING"


async def test_a_checkpoint_alone_is_no_reason_to_find_nothing(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """Nothing was ever read there."""
    job = jobs.list_job(site, Growing(), batch=1)
    shop(a=answer(b"no title"))
    for _ in range(2):
        report = await run(job, spool)
        assert report.failure is not None
        assert report.failure.code == "FOUND_NOTHING"


class WithStock(ListAdapter):
    """Asks for the stock as well."""

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """Two responses."""
        one = await net.get(target.url, role="page")
        return Fetched((one, await net.get(f"{target.url}/stock", role="stock")))


async def test_answers_that_still_hold_make_no_capture_and_a_mixed_one_cites_them(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """All 304: unchanged, and still counted as read; one of two: a capture whose other part cites the first."""
    job, first, second = jobs.list_job(site, WithStock()), {"ETag": '"1"'}, {"ETag": '"2"'}
    shop(a=answer(b"<title>A</title>", headers=first))
    site.serve("/p/a/stock", answer(b"5", headers=first))
    await run(job, spool)
    holds = answer(status=304, headers=first, content_type=None)
    site.serve("/p/a", holds)
    site.serve("/p/a/stock", holds)
    again = await run(job, spool)
    assert (again.outcomes, again.records) == ({Outcome.UNCHANGED: 1}, 1)
    assert site.requests[-1][1]["if-none-match"] == '"1"'
    site.serve("/p/a/stock", answer(b"6", headers=second))
    assert (await run(job, spool)).outcomes == {Outcome.STORED: 1}
    earlier, mixed = [spool.capture(one) for one in spool.ledger.captures()]
    cites = mixed.part("page").cites
    assert cites is not None
    assert (cites.captured_at, mixed.part("stock").cites) == (earlier.captured_at, None)
    site.serve("/p/a/stock", answer(status=304, headers=second, content_type=None))
    assert (await run(job, spool)).outcomes == {Outcome.UNCHANGED: 1}
