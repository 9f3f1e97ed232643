"""Replay safety of collecting, rule by rule: what the names of the other tests do not already say.

A retry, a restart or an overlapping run ends in the same durable state as one clean run.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prw_base import faults
from prw_sdk.adapter import Fetched, Net, Target
from prw_sdk.collect import SourceJob, collect
from prw_sdk.fetch.polite import Politeness
from prw_sdk.report import Event, EventKind
from prw_sdk.spool import ledger
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import NEVER_SETTLED, CheckpointKey, Item, ItemKey, Outcome, Verdict
from prw_sdk.spool.sqlite import SpoolUnusable
from tests.sdk import jobs
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.running import item, kept, run, run_at
from tests.support.waiting import until

Shop = Callable[..., None]
CHECKPOINT = CheckpointKey("ten_synth_a", "src_list", "list")
POINTS = (
    "collect.after_plan",
    "collect.after_fetch",
    "collect.after_blob",
    "collect.after_keep",
    "collect.before_checkpoint",
    "collect.after_checkpoint",
    "collect.before_finish",
)


def fixed_point(spool: Spool) -> tuple[list[tuple[str, str]], dict[str, object]]:
    """Everything that a run leaves behind for others: captures and checkpoint."""
    captures = sorted(
        (one.key.native_id, spool.capture(one).parts[0].sha256) for one in spool.ledger.captures()
    )
    return captures, dict(spool.checkpoints.load(CHECKPOINT).state)


@pytest.mark.parametrize("seed", range(8))
async def test_rule_2_any_sequence_of_failures_ends_at_the_fixed_point_of_one_clean_run(
    shop: Shop, job: SourceJob, spool: Spool, tmp_path: Path, seed: int
) -> None:
    """Replay rule 2: whatever fails, as often as it likes, and in whatever order."""
    shop(a=page("A"), gone=answer(status=404), b=page("B"), about=answer(b"no title"), c=page("C"))
    choice = random.Random(seed)
    for _ in range(5):
        faults.arm(f"{choice.choice(POINTS)}=raise@{choice.randint(1, 4)}")
        try:
            await run(job, spool)
        except ExceptionGroup:
            continue
        finally:
            faults.disarm()
    await run(job, spool)
    clean = Spool(tmp_path / "clean")
    await run(job, clean)
    expected = fixed_point(clean)
    clean.close()
    assert len(expected[0]) == 5
    assert fixed_point(spool) == expected


async def test_rule_3_every_item_has_an_outcome_that_says_whether_it_is_terminal(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Replay rule 3: applied, unchanged, gone, rejected with its reason; or put off with a time, or set aside."""
    busy, forbidden = answer(status=503), answer(status=403)
    shop(a=page("A"), gone=answer(status=404), about=answer(b"none"), no=forbidden, busy=busy)
    await run(job, spool)
    report = await run(job, spool)
    verdicts = {one: item(spool, one).verdict for one in ("a", "gone", "about", "no", "busy")}
    assert {one: verdict.outcome for one, verdict in verdicts.items()} == {
        "a": Outcome.UNCHANGED,
        "gone": Outcome.ABSENT,
        "about": Outcome.REJECTED,
        "no": Outcome.REJECTED,
        "busy": Outcome.RETRY_AT,
    }
    # what is passed for good says why, and what is not says when
    assert all(verdicts[one].code for one in ("gone", "about", "no", "busy"))
    assert [one for one, verdict in verdicts.items() if verdict.retry_at] == ["busy"]
    assert report.failure is None


async def test_rules_4_and_6_a_failed_checkpoint_keeps_its_items_and_their_replay_adds_nothing(
    site: Site, shop: Shop, job: SourceJob, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replay rules 4 and 6: bytes are outside of any transaction, so the old checkpoint is held, its replay settled."""
    shop(a=page("A"), b=page("B"))
    advance = spool.checkpoints.advance

    def refuse(*_: object) -> None:
        raise SpoolUnusable("the disk is full")

    monkeypatch.setattr(spool.checkpoints, "advance", refuse)
    with pytest.raises(SpoolUnusable):
        await run(job, spool)
    assert (sorted(kept(spool)), spool.checkpoints.load(CHECKPOINT).revision) == (["a", "b"], 0)
    monkeypatch.setattr(spool.checkpoints, "advance", advance)
    report = await run(job, spool)
    assert (report.planned, report.skipped, report.kept) == (2, 2, 0)
    assert sorted(kept(spool)) == ["a", "b"]
    assert spool.checkpoints.load(CHECKPOINT).state == {"done": 2}
    assert site.asked["/p/a"] == 1


async def test_rule_5_a_verdict_whose_capture_cannot_be_kept_is_rolled_back(
    shop: Shop, job: SourceJob, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replay rule 5: item and capture are one transaction."""
    shop(a=page("A"))
    broken = {**ledger._SQL, "keep_capture": "INSERT INTO nowhere VALUES (:body)"}
    monkeypatch.setattr(ledger, "_SQL", broken)
    with pytest.raises(SpoolUnusable):
        await run(job, spool)
    monkeypatch.undo()
    assert spool.ledger.item(ItemKey("ten_synth_a", "src_list", "a")) is None
    assert spool.checkpoints.load(CHECKPOINT).revision == 0


async def test_rule_8_stale_work_after_a_newer_verdict_overwrites_nothing(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """Replay rule 8: a fetch that was slow while another worker settled the item leaves that one's verdict."""

    class Overtaken(ListAdapter):
        """Another worker settles the item while this one fetches."""

        async def fetch(self, target: Target, net: Net) -> Fetched:
            """Be overtaken, then fetch."""
            key = ItemKey("ten_synth_a", "src_list", target.native_id)
            newer = Item(key, target.url, Verdict(Outcome.ABSENT, "GONE"), 0, 1, datetime.now(UTC))
            assert spool.ledger.settle(NEVER_SETTLED, newer)
            return await super().fetch(target, net)

    shop(a=page("A"))
    report = await run(jobs.list_job(site, Overtaken()), spool)
    assert (item(spool, "a").verdict.outcome, kept(spool)) == (Outcome.ABSENT, [])
    assert (report.skipped, report.kept) == (1, 0)


async def test_rule_12_two_runs_at_one_host_stay_within_its_limit_and_one_winner_stands(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """Replay rule 12: two sources over the same host share its places, however many targets each has in flight."""
    shop(**{f"p{n}": page(f"{n}") for n in range(8)})
    first = jobs.list_job(site, batch=8)
    second = replace(first, source=replace(first.source, source_id="src_other"))
    limits = replace(QUICK, concurrency=8, manners=Politeness(1000, 3))
    started: list[Event] = []

    def see(event: Event) -> None:
        if event.kind is EventKind.PLANNED:
            site.gate = site.gate or threading.Event()
            started.append(event)

    running = asyncio.create_task(collect([first, second], spool, limits, watch=see))
    await until(lambda: len(started) >= 1 and site.at_once == 3)
    assert site.gate is not None
    site.gate.set()
    reports = await running
    assert site.most_at_once == 3
    assert [report.kept for report in reports] == [8, 8]


async def test_rule_12_a_storm_of_429_is_asked_once_and_poisons_nothing(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Replay rule 12: items of a host that asks for a pause are put off, and spend none of their budget."""
    busy = answer(status=429, headers={"Retry-After": "3000"})
    shop(**{f"p{n:02}": busy for n in range(20)})
    limits = replace(QUICK, concurrency=1)
    now = datetime.now(UTC)
    report = await run(jobs.list_job(site, batch=20), spool, limits)
    assert report.outcomes == {Outcome.RETRY_AT: 20}
    assert sum(n for path, n in site.asked.items() if path.startswith("/p/")) == 1
    for number in range(20):
        verdict = item(spool, f"p{number:02}").verdict
        assert verdict.retry_at is not None
        assert verdict.retry_at >= now + timedelta(seconds=2900)
        assert verdict.attempts == (number == 0)


async def test_rule_13_rules_that_cannot_be_read_poison_no_item(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Replay rule 13: the outage of a host is not the fault of its pages, however often it is met."""
    shop(a=page("A"))
    plain = site.pages["/robots.txt"]
    now = datetime.now(UTC)
    await run_at(job, spool, now)
    site.serve("/p/a", answer(status=500))
    await run_at(job, spool, now + timedelta(hours=1))
    assert item(spool, "a").verdict.attempts == 1
    site.serve("/robots.txt", answer(status=500))
    for hour in range(2, 9):
        await run_at(job, spool, now + timedelta(hours=hour))
    verdict = item(spool, "a").verdict
    assert (verdict.outcome, verdict.code) == (Outcome.RETRY_AT, "ROBOTS_UNREACHABLE")
    site.pages["/robots.txt"] = plain
    site.serve("/p/a", page("A2"))
    await run_at(job, spool, now + timedelta(days=3))
    assert item(spool, "a").verdict.outcome is Outcome.STORED


async def test_rule_8_the_same_bytes_in_another_charset_are_another_capture(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Replay rule 8: what they say is another text."""
    body = b"<title>caf\xc3\xa9</title>"
    shop(a=answer(body, content_type="text/html; charset=windows-1252"))
    await run(job, spool)
    site.serve("/p/a", answer(body, content_type="text/html; charset=utf-8"))
    assert (await run(job, spool)).outcomes == {Outcome.STORED: 1}
    assert kept(spool) == ["a", "a"]


async def test_rule_9_what_is_to_be_done_is_on_the_disk_and_in_nobodys_memory(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Replay rule 9: a process that knows nothing but the folder takes up what another left, in the same run."""
    shop(a=page("A"), b=answer(status=503), c=page("C"), d=page("D"))
    faults.arm("collect.after_checkpoint=raise@1")
    with pytest.raises(ExceptionGroup):
        await run(job, spool)
    faults.disarm()
    spool.close()
    site.serve("/p/b", page("B"))
    other = Spool(spool.folder)
    report = await run_at(job, other, datetime.now(UTC) + timedelta(days=1))
    assert (report.generation, sorted(kept(other))) == (1, ["a", "b", "c", "d"])
    assert site.asked["/p/a"] == 1
    other.close()


def test_rule_11_the_spool_owns_its_tables_and_nobody_else_writes_them() -> None:
    """Replay rule 11: statements are the spool's own files; the SDK reaches no other database."""
    sdk = Path(ledger.__file__).parents[1]
    sources = {path.relative_to(sdk): path.read_text("utf-8") for path in sdk.rglob("*.py")}
    statement = re.compile(r"\b(INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE)\b")
    writers = {path.parts[0] for path, text in sources.items() if statement.search(text)}
    assert writers <= {"spool"}
    owned = {path.parent.name for path in sdk.rglob("*.sql")}
    assert owned == {"spool"}


async def test_a_run_that_waits_for_its_turn_can_be_stopped(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Ctrl-C does not wait for whoever holds the source."""
    shop(a=page("A"))
    stop = asyncio.Event()
    other = Spool(spool.folder)
    async with other.turn("ten_synth_a", "src_list", lambda: None):
        told = asyncio.Event()

        def see(event: Event) -> None:
            if event.kind is EventKind.WAITING:
                told.set()

        waiting = asyncio.create_task(collect([job], spool, QUICK, watch=see, stop=stop))
        await told.wait()
        stop.set()
        (report,) = await asyncio.wait_for(waiting, 5)
    other.close()
    assert (report.stopped, report.planned) == (True, 0)
