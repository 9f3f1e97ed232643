"""A run held against its bounds and its last answers, from the first request to what may be sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from prw_sdk.adapter import Bound, Fetched, Measure, Net, Target
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import Event, EventKind
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome
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
