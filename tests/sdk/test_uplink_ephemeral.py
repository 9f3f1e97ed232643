"""Collectors that keep nothing between runs: the resolver has their checkpoints, and what these pass undone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from prw.collector.v1.checkpoint_service_pb2 import Checkpoint as Kept
from prw.errors import Code, PrwError
from prw_sdk.adapter import Batch, Bound, Checkpoint, Measure, Net, Source
from prw_sdk.cli.run import RunResult, Way, push, run_sending
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CheckpointKey, Outcome
from prw_sdk.uplink import Drained
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.resolver_double import Intake
from tests.sdk.sending import resolver

Shop = Callable[..., None]
Anew = Callable[..., Awaitable[RunResult]]
NAME = ("src_list", "list", "")
KEY = CheckpointKey("ten_synth_a", "src_list", "list")


def checkpoint(revision: int, state: str) -> Kept:
    """One that somebody else has advanced."""
    return Kept(revision=revision, state=state)


def code(result: RunResult) -> str | None:
    """Why the run of the one source failed."""
    failure = result.sources[0].failure
    return None if failure is None else failure.code


@pytest.fixture
def anew(job: SourceJob, intake: Intake, tmp_path: Path) -> Anew:
    """A run over a folder of its own, as after the loss of everything."""
    count = 0

    async def run(job: SourceJob = job) -> RunResult:
        nonlocal count
        count += 1
        spool = Spool(tmp_path / f"gone-{count}")
        try:
            way = Way(ephemeral=True)
            return await run_sending([job], spool, QUICK, resolver(intake), unwatched, way)
        finally:
            spool.close()

    return run


async def test_the_resolver_keeps_the_checkpoint_and_the_next_run_begins_there(
    shop: Shop, site: Site, job: SourceJob, intake: Intake, anew: Anew
) -> None:
    """The first run is broken off by its plan; the next fetches only what is left."""
    shop(**{name: page(name) for name in "abcdef"})
    result = await anew()
    assert result.drained == Drained(submitted=6)
    found = intake.checkpoints[NAME]
    assert (found.revision, found.state) == (3, '{"done":6}')
    intake.checkpoints[NAME].state = '{"done":4}'
    before = len(site.requests)
    await anew()
    pages = [path for path in map(str, site.requests[before:]) if "/p/" in path]
    assert len(pages) == 2


async def test_everything_is_submitted_before_a_checkpoint_passes_it(
    shop: Shop, intake: Intake, anew: Anew
) -> None:
    """Replay rule 4: at each advance the captures of its batch are there."""
    shop(**{name: page(name) for name in "abcdef"})
    seen: list[int] = []
    entered = intake.enter

    async def enter(method: str, context: object) -> None:
        if method == "AdvanceCheckpoint":
            seen.append(len(intake.captures))
        await entered(method, context)  # type: ignore[arg-type]  # as it was given

    intake.enter = enter  # type: ignore[method-assign]  # this one looks on
    await anew()
    assert all(there >= 2 * number for number, there in enumerate(seen, 1))
    assert len(seen) == 3


async def test_a_checkpoint_does_not_pass_what_cannot_be_sent(
    shop: Shop, intake: Intake, anew: Anew
) -> None:
    """The resolver stays where it was, and the next run does it all again."""
    shop(a=page("A"), b=page("B"))
    intake.fail("SubmitCapture", *[PrwError(Code.UNAVAILABLE, "down")] * 99)
    result = await anew()
    assert code(result) == "UNAVAILABLE"
    assert intake.checkpoints == {}
    intake.fail("SubmitCapture")
    assert (await anew()).drained == Drained(submitted=2)


async def test_what_was_put_off_is_taken_up_by_a_later_run_that_knows_nothing_else(
    shop: Shop, site: Site, intake: Intake, anew: Anew
) -> None:
    """It travels with the checkpoint: url, code, attempts, and when it is due."""
    shop(a=page("A"), b=answer(status=500))
    await anew()
    (deferred,) = intake.checkpoints[NAME].deferred
    assert (deferred.native_record_id, deferred.code, deferred.attempts) == ("b", "UPSTREAM_500", 1)
    deferred.retry_at.FromSeconds(1)
    site.serve("/p/b", page("B"))
    assert (await anew()).sources[0].outcomes[Outcome.STORED] >= 1
    assert sorted(key[1] for key in intake.captures if key[1] == "b") == ["b"]


async def test_what_became_of_it_is_noted_where_the_plan_came_no_further(
    shop: Shop, site: Site, intake: Intake, anew: Anew
) -> None:
    """Attempts are counted from run to run, and what has succeeded is no longer put off."""
    shop(a=page("A"), b=answer(status=500))
    for attempts in (1, 2):
        await anew()
        (deferred,) = intake.checkpoints[NAME].deferred
        assert deferred.attempts == attempts
        deferred.retry_at.FromSeconds(1)
    assert intake.checkpoints[NAME].state == '{"done":2}'
    site.serve("/p/b", page("B"))
    await anew()
    assert list(intake.checkpoints[NAME].deferred) == []


class Parted(ListAdapter):
    """The same list, as a part of its source."""

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Batches of the part."""
        async for batch in super().plan(source, None, net):
            assert batch.then is not None
            yield Batch(batch.targets, Checkpoint(batch.then.state, "eu"))


async def test_each_part_of_a_source_keeps_what_it_put_off(
    shop: Shop, site: Site, job: SourceJob, intake: Intake, anew: Anew
) -> None:
    """Also where the checkpoint of the whole does not exist."""
    shop(a=page("A"), b=answer(status=500))
    parted = replace(job, adapter=Parted())
    await anew(parted)
    (deferred,) = intake.checkpoints["src_list", "list", "eu"].deferred
    assert deferred.native_record_id == "b"
    shop(a=page("A"))
    await anew(parted)
    assert len(intake.checkpoints["src_list", "list", "eu"].deferred) == 1
    assert list(intake.checkpoints) == [("src_list", "list", "eu")]


async def test_a_capture_that_is_refused_waits_for_a_person_at_the_resolver(
    shop: Shop, intake: Intake, anew: Anew
) -> None:
    """Its folder is gone by then (replay rule 13)."""
    shop(a=page("A"), b=page("B"))
    intake.fail("SubmitCapture", PrwError(Code.VALIDATION_FAILED, "no"))
    await anew()
    (deferred,) = intake.checkpoints[NAME].deferred
    assert (deferred.code, deferred.error) == ("VALIDATION_FAILED", "no")


async def test_an_answer_that_was_lost_is_no_conflict(
    shop: Shop, intake: Intake, anew: Anew
) -> None:
    """The second try meets our own advance."""
    shop(a=page("A"), b=page("B"))
    intake.late["AdvanceCheckpoint"] = 1
    assert (await anew()).is_clean
    assert intake.checkpoints[NAME].revision == 1


async def test_a_stale_run_overwrites_nothing(shop: Shop, intake: Intake, anew: Anew) -> None:
    """Replay rule 7: somebody else advances meanwhile, and wins."""
    shop(a=page("A"), b=page("B"))
    entered = intake.enter

    async def enter(method: str, context: object) -> None:
        if method == "AdvanceCheckpoint" and NAME not in intake.checkpoints:
            intake.checkpoints[NAME] = checkpoint(7, '{"done":1}')
        await entered(method, context)  # type: ignore[arg-type]  # as it was given

    intake.enter = enter  # type: ignore[method-assign]  # somebody else is quicker
    result = await anew()
    assert code(result) == "CHECKPOINT_CONFLICT"
    assert intake.checkpoints[NAME].revision == 7


async def test_captures_that_are_held_keep_the_checkpoint_back_until_the_run_is_judged(
    shop: Shop, job: SourceJob, intake: Intake, anew: Anew
) -> None:
    """A minimum that is met lets both go, in that order; one that is broken neither."""
    shop(a=page("A"), b=page("B"))
    needs = replace(job, bounds=(Bound(Measure.RECORDS, minimum=Decimal(3)),))
    result = await anew(needs)
    assert code(result) == "ASSERTION_BREACHED"
    assert (intake.captures, intake.checkpoints) == ({}, {})
    shop(a=page("A"), b=page("B"), c=page("C"))
    assert (await anew(needs)).drained == Drained(submitted=3)
    assert intake.checkpoints[NAME].state == '{"done":3}'


async def test_a_push_brings_the_checkpoints_after_the_captures(
    filled: Spool, intake: Intake
) -> None:
    """From then on the resolver's is the one that counts."""
    await push(filled, resolver(intake), unwatched)
    assert (intake.checkpoints[NAME].revision, intake.checkpoints[NAME].state) == (1, '{"done":3}')


async def test_after_a_push_the_resolvers_checkpoint_counts(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Ours goes on while it is based on theirs; else the spool takes theirs."""
    shop(a=page("A"), b=page("B"))
    await collect([job], spool, QUICK)
    await push(spool, resolver(intake), unwatched)
    shop(a=page("A"), b=page("B"), c=page("C"))
    await collect([job], spool, QUICK)
    await push(spool, resolver(intake), unwatched)
    assert (intake.checkpoints[NAME].revision, intake.checkpoints[NAME].state) == (2, '{"done":3}')
    intake.checkpoints[NAME] = checkpoint(5, '{"done":1}')
    shop(a=page("A"), b=page("B"), c=page("C"), d=page("D"))
    await collect([job], spool, QUICK)
    await push(spool, resolver(intake), unwatched)
    assert intake.checkpoints[NAME].revision == 5
    assert spool.checkpoints.load(KEY).state == {"done": 1}


async def test_a_resolver_that_keeps_no_checkpoints_is_pushed_to_all_the_same(
    filled: Spool, intake: Intake
) -> None:
    """Whoever granted no scope for them, for instance."""
    intake.fail("GetCheckpoint", PrwError(Code.MISSING_SCOPE, "checkpoints:write"))
    assert await push(filled, resolver(intake), unwatched) == Drained(submitted=3)
