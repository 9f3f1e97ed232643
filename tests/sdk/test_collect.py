"""The run: what becomes of each item, and when its checkpoint advances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from prw_base import faults
from prw_sdk.adapter import Batch, Checkpoint, Fetched, Net, Source, Target
from prw_sdk.collect import SourceJob, collect
from prw_sdk.evidence import Presence
from prw_sdk.report import Event, EventKind
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CheckpointKey, Outcome
from tests.sdk import jobs
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer, redirect
from tests.sdk.running import item, kept, run, run_at

Shop = Callable[..., None]
CHECKPOINT = CheckpointKey("ten_synth_a", "src_list", "list")


async def test_every_target_is_fetched_kept_and_settled(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """And the checkpoint stands behind the last of them."""
    shop(a=page("A"), b=page("B"), c=page("C"))
    report = await run(job, spool)
    assert report.is_clean
    assert (report.planned, report.kept, report.outcomes) == (3, 3, {Outcome.STORED: 3})
    assert report.fetched == 4
    assert sorted(kept(spool)) == ["a", "b", "c"]
    assert spool.checkpoints.load(CHECKPOINT).state == {"done": 3}


async def test_a_capture_holds_what_read_needs_later(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Bytes, adapter, and the market hints that its config pins."""
    shop(a=page("A"))
    await run(job, spool)
    (one,) = spool.ledger.captures()
    capture = spool.capture(one)
    assert str(capture.adapter) == "list@1.0.0"
    assert capture.config == {"locale": "en_US", "currency": "EUR"}
    assert [record.claims[0].value_as_stated for record in ListAdapter().read(capture)] == ["A"]


async def test_a_second_run_over_the_same_pages_keeps_nothing_new(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Replaying the same input is a fixed point."""
    shop(a=page("A"), gone=answer(status=404))
    await run(job, spool)
    before = kept(spool)
    report = await run(job, spool)
    assert report.outcomes == {Outcome.UNCHANGED: 1, Outcome.ABSENT: 1}
    assert (report.kept, kept(spool)) == (0, before)


async def test_changed_bytes_make_a_new_capture(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """And so does a changed config, since the capture pins it."""
    shop(a=page("A"))
    await run(job, spool)
    site.serve("/p/a", page("A2"))
    assert (await run(job, spool)).outcomes == {Outcome.STORED: 1}
    other = replace(job, source=replace(job.source, currency="USD"))
    assert (await run(other, spool)).outcomes == {Outcome.STORED: 1}
    assert kept(spool) == ["a", "a", "a"]


@pytest.mark.parametrize("status", [404, 410])
async def test_a_page_that_is_gone_makes_one_capture_of_its_absence(
    site: Site, shop: Shop, job: SourceJob, spool: Spool, status: int
) -> None:
    """So that the listing can be reviewed for retraction; when it comes back, that is new again."""
    shop(a=page("A"))
    await run(job, spool)
    site.serve("/p/a", answer(b"gone 1", status=status), answer(b"gone 2", status=status))
    assert (await run(job, spool)).outcomes == {Outcome.ABSENT: 1}
    assert (await run(job, spool)).kept == 0
    site.serve("/p/a", page("A"))
    assert (await run(job, spool)).outcomes == {Outcome.STORED: 1}
    presences = [spool.capture(one).presence for one in spool.ledger.captures()]
    assert presences == [Presence.PRESENT, Presence.ABSENT, Presence.PRESENT]


async def test_a_missing_response_beside_the_page_says_nothing_of_the_page(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """Only the target's own address can say that it is gone."""

    class WithStock(ListAdapter):
        """Asks for the stock as well."""

        async def fetch(self, target: Target, net: Net) -> Fetched:
            """Two responses."""
            one = await net.get(target.url, role="page")
            return Fetched((one, await net.get(target.url + "/stock", role="stock")))

    shop(a=page("A"))
    await run(jobs.list_job(site, WithStock()), spool)
    assert (item(spool, "a").verdict.outcome, kept(spool)) == (Outcome.REJECTED, [])
    assert item(spool, "a").verdict.code == "NOT_FOUND"


async def test_what_is_no_record_is_kept_and_rejected_with_its_reason(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Raw holds every response: a mended reader can be run over it."""
    shop(about=answer(b"no title here"), broken=page("unreadable"))
    report = await run(job, spool)
    assert report.outcomes == {Outcome.REJECTED: 2}
    assert (report.unreadable, report.is_clean) == (1, False)
    about, broken = item(spool, "about").verdict, item(spool, "broken").verdict
    assert (about.code, about.error) == ("NOT_A_RECORD", "no title")
    assert broken.code == "READ_FAILED"
    assert broken.error == "read raised ValueError: a defect of the reader"
    assert sorted(kept(spool)) == ["about", "broken"]


async def test_what_may_not_be_fetched_is_terminal_with_its_reason(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Robots rules, private addresses, refusals: auditable, and never asked again in the run."""
    robots = b"User-agent: *\nDisallow: /p/forbidden\n"
    site.serve("/robots.txt", answer(robots, content_type="text/plain"))
    shop(
        forbidden=page("X"),
        private=redirect("http://10.0.0.1/admin"),
        refused=answer(status=403),
        fine=page("F"),
    )
    report = await run(job, spool)
    codes = {name: item(spool, name).verdict.code for name in ("forbidden", "private", "refused")}
    assert codes == {
        "forbidden": "ROBOTS_FORBIDDEN",
        "private": "PRIVATE_ADDRESS",
        "refused": "UPSTREAM_403",
    }
    assert report.outcomes == {Outcome.REJECTED: 3, Outcome.STORED: 1}
    assert report.is_clean


async def test_a_busy_page_is_fetched_within_the_run(
    shop: Shop, site: Site, job: SourceJob, spool: Spool
) -> None:
    """503 with Retry-After, then 200."""
    shop(a=page("A"))
    site.serve("/p/a", answer(status=503, headers={"Retry-After": "0"}), page("A"))
    assert (await run(job, spool)).outcomes == {Outcome.STORED: 1}


async def test_a_failing_item_is_put_off_and_later_items_go_on(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Put off durably, so that the checkpoint may pass it."""
    shop(a=answer(status=500), b=page("B"), c=page("C"))
    report = await run(job, spool)
    assert report.outcomes == {Outcome.RETRY_AT: 1, Outcome.STORED: 2}
    assert not report.is_clean
    verdict = item(spool, "a").verdict
    assert (verdict.code, verdict.attempts) == ("UPSTREAM_500", 1)
    assert verdict.retry_at is not None
    assert spool.checkpoints.load(CHECKPOINT).state == {"done": 3}


async def test_what_was_put_off_is_taken_up_when_its_time_has_come(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Also when the plan no longer names it; and not before."""
    shop(a=answer(status=500))
    now = datetime.now(UTC)
    await run_at(job, spool, now)
    shop(b=page("B"))
    site.serve("/p/a", page("A"))
    await run_at(job, spool, now + timedelta(seconds=30))
    assert item(spool, "a").verdict.outcome is Outcome.RETRY_AT
    await run_at(job, spool, now + timedelta(minutes=2))
    assert item(spool, "a").verdict.outcome is Outcome.STORED
    assert item(spool, "a").verdict.attempts == 0


async def test_a_poison_item_is_set_aside_after_its_budget_until_it_is_revived(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Whether the source or the adapter is at fault (replay rule 13)."""
    shop(a=answer(status=500), defect=page("D"), b=page("B"))
    now = datetime.now(UTC)
    for hour in range(3):
        await run_at(job, spool, now + timedelta(hours=hour))
    report = await run_at(job, spool, now + timedelta(hours=3))
    assert report.outcomes == {Outcome.POISON: 2, Outcome.UNCHANGED: 1}
    assert item(spool, "defect").verdict.error == "fetch raised KeyError: 'a defect of the adapter'"
    assert item(spool, "a").verdict.attempts == QUICK.attempt_budget
    site.serve("/p/a", page("A"))
    spool.ledger.revive("src_list", "a", now + timedelta(hours=9))
    await run_at(job, spool, now + timedelta(hours=10))
    assert item(spool, "a").verdict.outcome is Outcome.STORED


async def test_a_plan_that_fails_holds_its_checkpoint_and_the_next_run_starts_anew(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """What was kept stays kept."""
    shop(a=page("A"))
    site.serve("/index.txt", answer(status=500))
    report = await run(job, spool)
    assert report.failure is not None
    assert report.failure.code == "UPSTREAM_500"
    assert spool.checkpoints.load(CHECKPOINT).revision == 0
    shop(a=page("A"))
    assert (await run(job, spool)).generation == 2


class FailingPlan(ListAdapter):
    """Plans one batch, then fails."""

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """One batch and a defect."""
        async for batch in super().plan(source, checkpoint, net):
            yield batch
            raise RuntimeError("a defect of the plan")


async def test_a_plan_that_raises_takes_nobody_else_down(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """The other source of the run is not its business."""
    shop(a=page("A"), b=page("B"), c=page("C"))
    bad = jobs.list_job(site, FailingPlan())
    other = replace(job, source=replace(job.source, source_id="src_other"))
    failing, fine = await collect([bad, other], spool, QUICK)
    assert failing.failure is not None
    assert failing.failure.code == "ADAPTER_ERROR"
    assert (failing.kept, fine.kept, fine.failure) == (2, 3, None)


@pytest.mark.parametrize("half", ["config", "checkpoint"])
async def test_what_an_adapter_pins_must_be_plain_json(
    site: Site, shop: Shop, spool: Spool, half: str
) -> None:
    """A fraction has no exact form; it is the adapter's failure, and told as such."""

    class Fraction(ListAdapter):
        """Pins a fraction."""

        def config(self, source: Source) -> Mapping[str, object]:
            """A fraction, or nothing."""
            return {"share": 0.5} if half == "config" else {}

        async def plan(
            self, source: Source, checkpoint: Checkpoint | None, net: Net
        ) -> AsyncIterator[Batch]:
            """With a fraction for a checkpoint."""
            async for batch in super().plan(source, checkpoint, net):
                yield Batch(batch.targets, Checkpoint({"done": 0.5}))

    shop(a=page("A"))
    report = await run(jobs.list_job(site, Fraction()), spool)
    assert report.failure is not None
    assert report.failure.code == "ADAPTER_ERROR"
    assert "float" in report.failure.message


async def test_a_lost_capture_holds_the_checkpoint(
    shop: Shop, job: SourceJob, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail item persistence and the checkpoint does not advance; the next run repairs it."""
    shop(a=page("A"), b=page("B"))
    settle_all = spool.ledger.settle_all
    monkeypatch.setattr(spool.ledger, "settle_all", lambda *_: 1 / 0)
    with pytest.raises(ExceptionGroup):
        await run(job, spool)
    assert spool.checkpoints.load(CHECKPOINT).revision == 0
    monkeypatch.setattr(spool.ledger, "settle_all", settle_all)
    report = await run(job, spool)
    assert (report.resumed, report.kept) == (True, 2)


async def test_a_stale_run_meets_the_persisted_winner(site: Site, shop: Shop, spool: Spool) -> None:
    """And overwrites nothing (replay rule 7)."""

    class Overtaken(ListAdapter):
        """Another collector advances the checkpoint while this one works."""

        async def fetch(self, target: Target, net: Net) -> Fetched:
            """Be overtaken, then fetch."""
            here = spool.checkpoints.load(CHECKPOINT)
            if not here.revision:
                spool.checkpoints.advance(here, {"done": 99}, datetime.now(UTC))
            return await super().fetch(target, net)

    shop(a=page("A"))
    report = await run(jobs.list_job(site, Overtaken()), spool)
    assert report.failure is not None
    assert report.failure.code == "CHECKPOINT_CONFLICT"
    assert spool.checkpoints.load(CHECKPOINT).state == {"done": 99}


async def test_two_runs_at_once_end_as_one(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """The second waits for its turn and finds the work done."""
    shop(**{name: page(name) for name in "abcdef"})
    second = Spool(spool.folder)
    reports = await asyncio.gather(run(job, spool), run(job, second))
    second.close()
    assert sorted(report.joined for report in reports) == [False, True]
    assert sorted(kept(spool)) == list("abcdef")
    assert all(site.asked[f"/p/{name}"] == 1 for name in "abcdef")


async def test_a_run_that_is_stopped_finishes_what_is_in_flight_and_can_be_resumed(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Two targets fetched, two on their way to the disk; nothing is fetched twice, nothing is left out."""
    shop(**{name: page(name) for name in "abcdef"})
    stop = asyncio.Event()

    def stop_at_first(event: Event) -> None:
        if event.kind is EventKind.SETTLED:
            stop.set()

    limits = replace(QUICK, concurrency=2)
    (report,) = await collect([job], spool, limits, watch=stop_at_first, stop=stop)
    assert report.stopped
    assert 1 <= report.kept <= 4
    again = await run(job, spool)
    assert again.resumed
    assert sorted(kept(spool)) == list("abcdef")
    assert all(site.asked[f"/p/{name}"] == 1 for name in "abcdef")


async def test_a_stop_between_two_batches_is_resumed_from_the_checkpoint(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """The checkpoint of a finished batch holds."""
    shop(**{name: page(name) for name in "abcd"})
    faults.arm("collect.after_checkpoint=raise@1")
    with pytest.raises(ExceptionGroup):
        await run(job, spool)
    faults.disarm()
    report = await run(job, spool)
    assert (report.resumed, report.planned) == (True, 2)
    assert sorted(kept(spool)) == list("abcd")


async def test_the_targets_in_flight_are_bounded(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """By the run's own limit, however large a batch is."""
    shop(**{f"p{number}": page("x") for number in range(12)})
    limits = replace(QUICK, concurrency=3)
    report = await run(jobs.list_job(site, batch=12), spool, limits)
    assert report.kept == 12
    assert site.most_at_once <= 3


async def test_tenants_do_not_share_items(shop: Shop, job: SourceJob, spool: Spool) -> None:
    """The identity of an item starts with its tenant (replay rule 1)."""
    shop(a=page("A"))
    await run(job, spool)
    report = await run(replace(job, tenant="ten_synth_b"), spool)
    assert report.outcomes == {Outcome.STORED: 1}
