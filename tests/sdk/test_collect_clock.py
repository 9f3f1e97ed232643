"""A clock that was wrong and is set back between two runs loses nothing and delays nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from prw_sdk.adapter import Bound, Measure
from prw_sdk.collect import SourceJob
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import ItemKey, Outcome
from tests.sdk.jobs import page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.running import item, run_at

Shop = Callable[..., None]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
AHEAD = NOW + timedelta(days=30)


async def test_the_newest_capture_is_the_one_that_was_kept_last(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Whatever their times say: it is what the next run asks about."""
    shop(a=page("before"))
    await run_at(job, spool, AHEAD)
    site.serve("/p/a", page("after"))
    report = await run_at(job, spool, NOW)
    assert report.outcomes == {Outcome.STORED: 1}
    last = spool.ledger.last_capture(ItemKey("ten_synth_a", "src_list", "a"))
    assert last is not None
    assert "after" in spool.capture(last).part("page").text()
    assert (await run_at(job, spool, NOW + timedelta(hours=1))).outcomes == {Outcome.UNCHANGED: 1}


async def test_what_a_good_run_held_is_sent_although_an_earlier_capture_says_it_is_later(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """The newest is the one that was kept last."""
    bound = replace(job, bounds=(Bound(Measure.RECORDS, minimum=Decimal(1)),))
    shop(a=page("before"))
    await run_at(bound, spool, AHEAD)
    site.serve("/p/a", page("after"))
    report = await run_at(bound, spool, NOW)
    assert (report.failure, report.held) == (None, 0)
    assert len(spool.ledger.kept()) == 2


async def test_what_was_put_off_by_a_wrong_clock_is_tried_by_the_right_one(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Its time is a month ahead; a small step of a clock is none that matters."""
    shop(a=answer(status=503))
    await run_at(job, spool, AHEAD)
    assert item(spool, "a").verdict.outcome is Outcome.RETRY_AT
    asked = site.asked["/p/a"]
    await run_at(job, spool, AHEAD - timedelta(minutes=1))
    assert site.asked["/p/a"] == asked
    site.serve("/p/a", page("A"))
    report = await run_at(job, spool, NOW)
    assert report.kept == 1
    assert item(spool, "a").verdict.outcome is not Outcome.RETRY_AT


def test_a_receipt_that_a_wrong_clock_asked_for_is_asked_for_by_the_right_one(
    filled: Spool,
) -> None:
    """Not only once the right clock has come so far; one that was asked for just now waits its time."""
    (one, *_) = filled.ledger.captures()
    filled.ledger.mark_submitted(one.row, "rcp_1")
    waits = [(one.row, "rcp_1")]
    for noted, expected in ((NOW, []), (AHEAD, waits)):
        filled.ledger.note_receipts({one.row: "resolving"}, noted)
        assert filled.ledger.receipts_to_ask(0, NOW - timedelta(minutes=1), 10) == expected
