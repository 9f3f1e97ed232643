"""Replay safety, with the real runner: the ten verifications, each under its name.

A retry, a duplicate, a crash, or overlapping work ends in the same durable state as one clean run. What fails here
through the adapter's own fault is mostly a `fetch` that asks for other things each time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prw.errors import PrwError
from prw_base import faults
from prw_sdk.account import account
from prw_sdk.evidence import Capture, Part
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Item, NewCapture, Outcome, Verdict
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.testing.bench import Bench, fail, fail_with
from prw_sdk.testing.fixtures import Fixture
from prw_sdk.testing.reading import read
from prw_sdk.testing.replay import AT_ONCE, SOURCE, Stage, staged
from prw_sdk.testing.server import answer

FEWEST = 2


@pytest.fixture
def stage(bench: Bench, tmp_path: Path) -> Iterator[Stage]:
    """The fixtures served by a local server."""
    bench.fresh()
    if len(bench.cases) < FEWEST:
        pytest.skip("first record what test_there_are_enough_fixtures asks for")
    with staged(bench, tmp_path) as one:
        if len(one.cases) < FEWEST:
            fail(
                f"{len(one.cases)} fixtures can be fetched again, and {FEWEST} are needed",
                "→ record pages that are there (status 200), each with its own native_record_id and address",
            )
        yield one


def _clean(stage: Stage) -> tuple[list[tuple[str, ...]], dict[str, object]]:
    """What one undisturbed run leaves behind."""
    spool = stage.spool("clean")
    asyncio.run(stage.run(spool))
    return stage.left_behind(spool)


def _same(found: object, expected: object, what: str) -> None:
    if found != expected:
        fail(
            f"{what} left {found}",
            f"and one clean run leaves {expected}",
            "→ let fetch be repeatable",
        )


def test_fetch_gives_the_parts_of_the_fixture(stage: Stage) -> None:
    """What is recorded is what the adapter fetches today: the same parts with the same bytes."""
    spool = stage.spool()
    report = asyncio.run(stage.run(spool))
    kept = stage.captured(spool)
    problems = []
    for case in stage.cases:
        capture = kept.get(case.case)
        item = stage.item(spool, case)
        told = "" if item is None else f" ({item.verdict.code}: {item.verdict.error})"
        if capture is None:
            problems.append(f"{case.case} was not captured{told}")
            continue
        was, now = _roles(case.capture.parts), _roles(capture.parts)
        if was != now:
            problems.append(f"{case.case} has the parts {was}, and fetch gives {now}")
    if report.failure is not None:
        problems.append(f"the run failed: {report.failure}")
    fail_with(problems, "record the fixture anew, or let fetch get every part of it under its role")


def _roles(parts: tuple[Part, ...]) -> list[str]:
    return [part.role for part in parts]


def test_what_is_captured_is_read_as_the_fixture(stage: Stage, bench: Bench) -> None:
    """A capture of the real runner gives the records that the fixture gives."""
    spool = stage.spool()
    asyncio.run(stage.run(spool))
    kept = stage.captured(spool)
    different = [
        f"{case.case} gives other records once the runner has fetched it"
        for case in stage.cases
        if case.case in kept and read(bench.fresh(), kept[case.case])[0] != bench.records(case)
    ]
    fail_with(different, "record the fixture anew; read may depend on parts, config and id alone")


def test_verification_1_the_same_batch_replayed_reaches_the_same_fixed_point(stage: Stage) -> None:
    """Replay the same batch and assert the same fixed point."""
    spool = stage.spool()
    for _ in range(3):
        asyncio.run(stage.run(spool, stage.job(batch=2)))
    _same(stage.left_behind(spool), _clean(stage), "three runs over the same pages")


def test_verification_2_an_item_that_cannot_be_persisted_holds_the_checkpoint(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail item persistence and assert the checkpoint does not advance."""
    spool = stage.spool()

    def refuse(*_: object, **__: object) -> None:
        raise SpoolUnusable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(spool.ledger, "settle_all", refuse)
        _run_refused(stage, spool)
    held = dict(stage.saved(spool).state)
    if held:
        fail(f"the checkpoint is {held} although no item was persisted")
    asyncio.run(stage.run(spool))
    _same(stage.left_behind(spool), _clean(stage), "the run after")


def test_verification_3_a_checkpoint_that_cannot_be_persisted_is_held_and_its_replay_adds_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail checkpoint persistence: bytes cannot be rolled back, so the old one stays, and its replay adds nothing."""
    spool = stage.spool()

    def refuse(*_: object, **__: object) -> None:
        raise SpoolUnusable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(spool.checkpoints, "advance", refuse)
        _run_refused(stage, spool)
    if stage.saved(spool).revision:
        fail("a checkpoint advanced that could not be persisted")
    asyncio.run(stage.run(spool))
    _same(stage.left_behind(spool), _clean(stage), "the run after")


def _run_refused(stage: Stage, spool: Spool) -> None:
    """A run over a spool that refuses: it says so, or ends as failed."""
    try:
        report = asyncio.run(stage.run(spool))
    except (SpoolUnusable, BaseExceptionGroup):
        return
    if report.failure is None and not report.stopped:
        fail("a run over a spool that keeps nothing was told as a success")


def test_verification_4_duplicates_delivered_at_once_have_one_durable_effect(stage: Stage) -> None:
    """Deliver duplicates concurrently and assert one durable effect."""

    async def both() -> None:
        runs = (stage.run(stage.spool(), stage.job(batch=8)) for _ in range(2))
        await asyncio.gather(*runs)

    asyncio.run(both())
    spool = stage.spool()
    captures, _ = stage.left_behind(spool)
    _same(captures, _clean(stage)[0], "two runs at once")


@pytest.mark.parametrize(
    "point", ["collect.after_fetch", "collect.after_blob", "collect.after_keep"]
)
def test_verification_5_a_crash_after_an_effect_and_before_its_acknowledgement_is_replayed(
    stage: Stage, point: str
) -> None:
    """Crash after a remote side effect and before acknowledgment, then replay."""
    spool = stage.spool()
    faults.arm(f"{point}=raise@1")
    try:
        asyncio.run(stage.run(spool))
    except Exception as crash:  # noqa: BLE001  # whatever the injected crash surfaces as
        del crash
    finally:
        faults.disarm()
    spool.close()
    again = stage.spool()
    # a crash inside an item's own attempt puts that item off; its time comes
    for hours in (0, 2):
        asyncio.run(stage.run(again, now=datetime.now(UTC) + timedelta(hours=hours)))
    _same(stage.left_behind(again)[0], _clean(stage)[0], "a crash and its replay")


def test_verification_6_stale_work_cannot_overwrite_newer_work(stage: Stage) -> None:
    """Finish stale work after a newer version and assert it cannot overwrite."""
    spool, case = stage.spool(), stage.cases[0]
    asyncio.run(stage.run(spool))
    newest = stage.item(spool, case)
    if newest is None:
        fail(f"{case.case} has no row in the ledger")
        return
    stale = replace(newest, verdict=Verdict(Outcome.REJECTED, "STALE"), version=newest.version - 1)
    late = NewCapture(datetime(2020, 1, 1, tzinfo=UTC), b"{}")
    if spool.ledger.settle(stale.version, stale, late) or stage.item(spool, case) != newest:
        fail("work that was begun before overwrote what was settled meanwhile")
    _same(stage.left_behind(spool), _clean(stage), "late work")


def test_verification_7_what_was_put_off_is_found_although_no_plan_lists_it(stage: Stage) -> None:
    """Leave an enqueue gap and assert the bounded repair scan finds it."""
    spool, case = stage.spool(), stage.cases[0]
    stage.break_page(case, answer(status=503))
    now = datetime.now(UTC)
    asyncio.run(stage.run(spool, now=now, budget=9))
    stage.serve(case)
    others = stage.job(listed=stage.cases[1:])
    asyncio.run(stage.run(spool, others, now=now + timedelta(days=2), budget=9))
    _settled(stage, spool, case)


def test_verification_8_a_poison_item_is_set_aside_and_later_items_go_on(stage: Stage) -> None:
    """Exhaust the retry budget for one poison item: it is not dropped, and later items reach a terminal state."""
    spool, poison = stage.spool(), stage.cases[0]
    stage.break_page(poison, answer(status=500))
    now = datetime.now(UTC)
    for day in range(4):
        asyncio.run(stage.run(spool, now=now + timedelta(days=day), budget=2))
    item = stage.item(spool, poison)
    if item is None or item.verdict.outcome is not Outcome.POISON or not item.verdict.error:
        fail(f"{poison.case} is {item and item.verdict}, and should be set aside with its error")
    for case in stage.cases[1:]:
        _settled(stage, spool, case)
    if stage.saved(spool).revision == 0:
        fail("the checkpoint never passed the poison item")
    stage.serve(poison)
    spool.ledger.revive(SOURCE, None, now + timedelta(days=9))
    asyncio.run(stage.run(spool, now=now + timedelta(days=10)))
    _settled(stage, spool, poison)


def _settled(stage: Stage, spool: Spool, case: Fixture) -> None:
    item: Item | None = stage.item(spool, case)
    fine = {Outcome.STORED, Outcome.UNCHANGED, Outcome.REJECTED}
    if item is None or item.verdict.outcome not in fine:
        fail(f"{case.case} is {item and item.verdict}, and should be settled")


def test_verification_9_overlapping_workers_keep_to_the_limit_and_one_winner_stands(
    stage: Stage,
) -> None:
    """Overlap two workers at the provider's limit: calls stay bounded, the persisted winner is not overwritten."""
    spool = stage.spool()
    before = stage.saved(spool)
    stage.site.slowness = 0.02

    async def both() -> None:
        jobs = (stage.job(batch=8), stage.job(batch=8, source_id="src_other"))
        await asyncio.gather(*(stage.run(stage.spool(), job) for job in jobs))

    asyncio.run(both())
    hosts = Counter(part.url_asked.split("/")[2] for c in stage.cases for part in c.capture.parts)
    most = AT_ONCE * len(hosts)
    if stage.site.most_at_once > most:
        fail(f"{stage.site.most_at_once} requests were under way at once, and {most} are allowed")
    winner = stage.saved(spool)
    try:
        spool.checkpoints.advance(before, {"done": -1}, datetime.now(UTC))
    except PrwError as conflict:
        if stage.saved(spool) != winner:
            fail(f"a stale run changed the checkpoint: {conflict}")
        return
    fail("a stale run overwrote the persisted checkpoint")


def test_verification_10_every_field_that_a_capture_states_is_stored_or_excluded(
    stage: Stage, bench: Bench
) -> None:
    """Read a capture back through the adapter's own `stated`: each field is stored, or excluded with a reason."""
    spool = stage.spool()
    asyncio.run(stage.run(spool))
    unknown = sorted(
        f"{case}: {name!r} is neither stored nor excluded"
        for case, capture in stage.captured(spool).items()
        for name in _unknown(bench, capture)
    )
    fail_with(unknown, "declare it in fields")


def _unknown(bench: Bench, capture: Capture) -> tuple[str, ...]:
    return account(bench.adapter, capture, read(bench.adapter, capture)[0]).unknown
