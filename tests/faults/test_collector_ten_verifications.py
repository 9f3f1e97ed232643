"""The ten verifications of replay-safe ingestion, each by its own name: the real runner, the misbehaving server.

The conformance suite runs the same ten over an author's fixtures (`prw_sdk.testing.suite.check_replay`). Here they go
further: processes are killed, the spool's own database fails, and a resolver stands at the other end.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prw.errors import Code
from prw_sdk.account import Account, account
from prw_sdk.adapter import (
    Adapter,
    Batch,
    Checkpoint,
    Excluded,
    Fetched,
    Net,
    Source,
    Target,
)
from prw_sdk.cli.run import RunResult, Way, push, run_sending
from prw_sdk.collect import SourceJob
from prw_sdk.evidence import Capture
from prw_sdk.fetch.polite import Politeness
from prw_sdk.plugins import load
from prw_sdk.report import unwatched
from prw_sdk.spool.ledger import Ledger
from prw_sdk.spool.model import CaptureState, Item, ItemKey, NewCapture, Outcome, Verdict
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.testing.reading import read
from prw_sdk.testing.replay import staged
from prw_sdk.testing.server import answer
from prw_sdk.testing.subject import find
from tests.faults.collector_street import CHECKPOINT, SOURCE, TENANT, Street, street
from tests.sdk.catalogue_adapter import ListAdapter, ListSettings
from tests.sdk.commanding import invoke
from tests.sdk.conforming import bench
from tests.sdk.jobs import QUICK, page
from tests.sdk.resolver_double import Intake, receiving
from tests.sdk.sending import resolver, states
from tests.support.waiting import until

KILLED = -signal.SIGKILL
AT_ONCE = 3


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Street]:
    """A street of pages."""
    with street(tmp_path) as one:
        put_pages(one)
        yield one


def put_pages(here: Street) -> None:
    """Six things, one that is gone, and a page that is no record."""
    here.pages(*"abcdef", gone=answer(status=404), about=answer(b"no title"))


async def test_verification_1_the_same_batch_replayed_reaches_the_same_fixed_point(
    here: Street,
) -> None:
    """Replay the same batch and assert the same fixed point: after a kill at the end, and in whole runs after it."""
    clean = await here.clean()
    assert await here.collector(faults="collect.before_finish=kill@1") == KILLED
    asked = here.asked()
    assert here.left() == replace(clean, unfinished=True)
    assert await here.collector() == 0
    assert (here.left(), here.asked()) == (clean, asked)
    for _ in range(2):
        report = await here.run()
        assert (report.kept, report.failure) == (0, None)
        again = replace(here.left(), outcomes=clean.outcomes)
        assert again == clean


async def test_verification_2_an_item_that_cannot_be_persisted_holds_the_checkpoint(
    here: Street,
) -> None:
    """Fail item persistence and assert the checkpoint does not advance: the database fails at one capture."""
    clean = await here.clean()
    here.spool()
    with here.refused("captures", "NEW.native_id = 'c'"), pytest.raises(SpoolUnusable):
        await here.run()
    held = here.left()
    passed = here.names[: int(str(held.checkpoint.get("done", 0)))]
    assert "c" not in passed
    assert set(passed) <= held.outcomes.keys()
    # the verdict went with its capture
    assert here.item("c") is None
    await here.run()
    assert here.left() == clean


@pytest.mark.parametrize("table", ["checkpoints", "profiles"])
async def test_verification_3_a_checkpoint_that_cannot_be_persisted_is_rolled_back_with_what_it_would_pass(
    here: Street, table: str
) -> None:
    """Fail checkpoint persistence and assert database writes roll back; what is durable by itself is not done twice.

    Bytes and verdicts cannot join the checkpoint's transaction (replay rule 6), so the old one stands and its replay
    adds nothing. The end of a run is one transaction: it does not end without its profile.
    """
    clean = await here.clean()
    here.spool()
    with here.refused(table), pytest.raises(SpoolUnusable):
        await here.run()
    broken = here.left()
    assert broken.unfinished
    assert broken.checkpoint == ({} if table == "checkpoints" else clean.checkpoint)
    has_capture = {name for name, outcome in broken.outcomes.items()}
    assert set(broken.captured) == has_capture
    asked = here.asked()
    await here.run()
    assert here.left() == clean
    assert all(here.asked()[name] == asked[name] for name in broken.outcomes)


async def test_verification_4_duplicates_delivered_at_once_have_one_durable_effect(
    here: Street,
) -> None:
    """Deliver duplicates concurrently and assert one durable effect: every line twice, and several runs at once."""
    clean = await here.clean()
    here.lists([name for name in here.names for _ in range(2)])
    runs = (here.run(job=here.job(batch=16)) for _ in range(3))
    processes = (here.collector() for _ in range(2))
    ended = await asyncio.gather(*runs, *processes, return_exceptions=True)
    assert [one for one in ended if isinstance(one, BaseException)] == []
    found = here.left()
    assert found.captures == clean.captures
    assert found.blobs == clean.blobs
    assert len(found.captured) == len(set(found.captured))


@pytest.mark.parametrize(
    "point", ["collect.after_fetch", "collect.after_blob", "collect.after_keep"]
)
async def test_verification_5_a_crash_after_an_effect_and_before_its_acknowledgement_is_replayed(
    here: Street, point: str
) -> None:
    """Crash after a remote side effect and before acknowledgment, then replay: the fetch, the bytes, the submission."""
    clean = await here.clean()
    assert await here.collector(faults=f"{point}=kill@3") == KILLED
    assert await here.collector() == 0
    assert here.left() == clean
    await here.run()
    assert here.left().captures == clean.captures
    async with receiving() as intake:
        assert await here.pusher(intake.address, faults="uplink.after_submit=kill@2") == KILLED
        await push(here.spool(), resolver(intake), unwatched)
        captured = sorted(native_id for _, native_id, _ in intake.captures)
        assert captured == clean.captured
        assert states(here.spool()) == {CaptureState.SUBMITTED: len(captured)}


async def test_verification_6_stale_work_cannot_overwrite_newer_work(here: Street) -> None:
    """Finish stale work after a newer version and assert it cannot overwrite: neither an item nor a checkpoint."""
    spool, newer = here.spool(), datetime(2026, 1, 1, tzinfo=UTC)

    class Overtaken(ListAdapter):
        """While this one fetches, another worker settles the item, and later advances the checkpoint."""

        async def fetch(self, target: Target, net: Net) -> Fetched:
            """Be overtaken, then fetch."""
            if target.native_id == "a":
                key = ItemKey(TENANT, SOURCE, "a")
                won = Item(key, target.url, Verdict(Outcome.ABSENT, "GONE"), 0, 2, newer)
                assert spool.ledger.settle(0, won, NewCapture(newer, b'{"parts": []}'))
                spool.checkpoints.advance(spool.checkpoints.load(CHECKPOINT), {"done": 1}, newer)
            return await super().fetch(target, net)

    report = await here.run(job=here.job(Overtaken()))
    assert report.failure is not None
    assert report.failure.code == Code.CHECKPOINT_CONFLICT.value
    winner = spool.checkpoints.load(CHECKPOINT)
    assert (winner.revision, winner.state) == (1, {"done": 1})
    item = here.item("a")
    assert item is not None
    assert (item.verdict.outcome, item.updated_at) == (Outcome.ABSENT, newer)
    kept = [one for one in spool.ledger.captures() if one.key.native_id == "a"]
    assert [one.captured_at for one in kept] == [newer]


async def test_verification_7_a_gap_before_the_queue_is_found_by_the_bounded_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave an enqueue gap and assert the bounded repair scan finds it: put off and unlisted, kept and not sent."""
    with street(tmp_path) as here:
        names = [f"p{number}" for number in range(230)]
        here.pages(**dict.fromkeys(names, answer(status=503)))
        now = datetime.now(UTC)
        await here.run_at(now)
        assert set(here.left().outcomes.values()) == {Outcome.RETRY_AT.value}
        here.pages(*names)
        here.lists([])
        scanned = _scans(monkeypatch)
        await here.run_at(now + timedelta(days=2))
        assert sorted(here.left().captured) == sorted(names)
        assert max(scanned) < len(names) <= sum(scanned)
    with street(tmp_path / "gap") as here:
        here.pages(*"abcdef")
        assert await here.collector(faults="collect.after_keep=kill@4") == KILLED
        async with receiving() as intake:
            await push(here.spool(), resolver(intake), unwatched)
            sent = sorted(native_id for _, native_id, _ in intake.captures)
        assert sent == here.left().captured
        assert len(sent) >= 4


def _scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each look for what is due has found, from now on."""
    found: list[int] = []
    due = Ledger.due

    def watched(self: Ledger, tenant: str, source_id: str, now: datetime) -> list[Item]:
        items = due(self, tenant, source_id, now)
        found.append(len(items))
        return items

    monkeypatch.setattr(Ledger, "due", watched)
    return found


async def test_verification_8_a_poison_item_is_set_aside_and_later_items_go_on(
    here: Street,
) -> None:
    """Exhaust the retry budget for one poison item: later items are terminal, and the failure is not dropped."""
    clean = await here.clean()
    here.site.serve("/p/b", answer(status=500))
    now = datetime.now(UTC)
    for day in range(QUICK.attempt_budget + 1):
        await here.run_at(now + timedelta(days=day))
    found, poison = here.left(), here.item("b")
    assert poison is not None
    assert poison.verdict.outcome is Outcome.POISON
    assert poison.verdict.attempts == QUICK.attempt_budget
    assert "500" in (poison.verdict.error or "")
    assert found.captured == [name for name in clean.captured if name != "b"]
    assert found.checkpoint == clean.checkpoint
    here.site.serve("/p/b", page("Thing b"))
    revived = invoke("retry", here.folder / "spool", "--source", SOURCE, "--item", "b")
    assert revived.exit_code == 0, revived.output
    await here.run_at(now + timedelta(days=9))
    assert here.left().captures == clean.captures


async def test_verification_9_overlapping_workers_keep_to_the_limit_and_one_winner_stands(
    here: Street,
) -> None:
    """Overlap two workers at the provider's limit: calls stay bounded, the persisted winner is not overwritten.

    Two collectors that keep nothing between runs, with batches that differ; the resolver has their checkpoint.
    """

    class Overlapping(ListAdapter):
        """Plans once both workers have loaded the checkpoint, and have asked for the index."""

        async def plan(
            self, source: Source, checkpoint: Checkpoint | None, net: Net
        ) -> AsyncIterator[Batch]:
            """As ever, after the other."""
            planned = super().plan(source, checkpoint, net)
            first = await anext(planned)
            await both.wait()
            # the pages are held from here on
            here.site.gate = held
            yield first
            async for batch in planned:
                yield batch

    both, held = asyncio.Barrier(2), threading.Event()
    async with receiving() as intake:
        jobs = [here.job(Overlapping(), batch) for batch in (2, 3)]
        runs = [asyncio.create_task(_worker(here, job, intake)) for job in jobs]
        await until(lambda: here.site.gate is held and here.site.at_once >= AT_ONCE)
        here.site.slowness = 0.01
        held.set()
        results = await asyncio.gather(*runs)
        winner = intake.checkpoints[(SOURCE, "list", "")]
    assert here.site.most_at_once == AT_ONCE
    failures = [one.sources[0].failure for one in results]
    assert [one.code for one in failures if one] == [Code.CHECKPOINT_CONFLICT.value]
    batches = 4 if failures[0] is None else 3
    assert (winner.state, winner.revision) == ('{"done":8}', batches)


async def _worker(here: Street, job: SourceJob, intake: Intake) -> RunResult:
    """A collector that keeps nothing between runs, in a folder of its own."""
    limits = replace(QUICK, concurrency=8, manners=Politeness(1000, AT_ONCE))
    assert isinstance(job.source.settings, ListSettings)
    spool = here.spool(f"worker-{job.source.settings.batch}")
    way = Way(ephemeral=True)
    return await run_sending([job], spool, limits, resolver(intake), unwatched, way)


@pytest.mark.parametrize("name", sorted(load().adapters))
async def test_verification_10_every_field_that_a_source_states_is_stored_or_excluded(
    name: str, tmp_path: Path
) -> None:
    """Read a fixture back through the adapter's own `stated`: every field is stored, or excluded with a reason.

    Every installed adapter; its fixtures come from the server and out of the spool, as a run captured them.
    """
    adapter = load().adapters[name]
    with staged(bench(adapter, find(name, Path("/")).fixtures), tmp_path) as stage:
        assert len(stage.cases) >= 2
        spool = stage.spool()
        report = await stage.run(spool)
        assert report.failure is None
        captured = stage.captured(spool)
        assert captured.keys() == {case.case for case in stage.cases}
        told = [accounted(adapter(), capture) for capture in captured.values()]
    assert all(one.unknown == () for one in told)
    assert any(one.stored for one in told)


def accounted(adapter: Adapter, capture: Capture) -> Account:
    """What became of every name that the capture states; none is left out without a reason."""
    found = account(adapter, capture, read(adapter, capture)[0])
    for name in found.excluded:
        how = adapter.disposition(name, capture.config)
        assert isinstance(how, Excluded)
        assert how.reason.strip()
    return found
