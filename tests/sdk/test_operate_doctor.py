"""What is found in a spool that is not as it should be, and what may be mended without losing anything."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prw_sdk.operate.doctor import Finding, Trouble, examine
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import (
    CheckpointKey,
    Item,
    ItemKey,
    Outcome,
    RunEnd,
    SavedCheckpoint,
    Verdict,
)
from tests.sdk.commanding import invoke
from tests.sdk.jobs import page
from tests.sdk.sending import states

Shop = Callable[..., None]
LATER = datetime(2100, 1, 1, tzinfo=UTC)


async def troubles(spool: Spool, **other: bool) -> dict[Trouble, Finding]:
    """The findings by their kind, as a month-old spool has them."""
    found = await examine(spool, LATER, stale=timedelta(days=999_999), **other)
    return {one.trouble: one for one in found}


async def test_a_sound_spool_has_no_findings(filled: Spool) -> None:
    """After a run that settled everything."""
    assert await troubles(filled) == {}


async def test_a_run_that_ended_with_nothing_to_show_is_a_ghost(spool: Spool) -> None:
    """It planned nothing, settled nothing and failed at nothing."""
    now = datetime.now(UTC)
    run = spool.ledger.begin_run("ten_synth_a", "src_list", now)
    spool.ledger.finish_run(run, now, RunEnd())
    found = await troubles(spool)
    assert (list(found), found[Trouble.GHOST].source_id) == ([Trouble.GHOST], "src_list")


async def test_a_run_that_settled_less_than_it_planned_is_told(filled: Spool) -> None:
    """Estimate against actual."""
    now = datetime.now(UTC)
    run = filled.ledger.begin_run("ten_synth_a", "src_list", now)
    filled.ledger.finish_run(run, now, RunEnd(planned=5))
    found = (await troubles(filled))[Trouble.ESTIMATE]
    assert (found.count, found.serious) == (5, False)
    assert "planned 5 targets, 0 are settled" in found.said


async def test_an_interrupted_run_is_told_from_one_that_goes_on(spool: Spool) -> None:
    """By the turn that a running one holds."""
    spool.ledger.begin_run("ten_synth_a", "src_list", datetime.now(UTC))
    found = (await troubles(spool))[Trouble.UNFINISHED_RUN]
    assert (found.serious, found.remedy) == (True, "run again to resume")
    other = Spool(spool.folder)
    async with other.turn("ten_synth_a", "src_list", lambda: None):
        assert not (await troubles(spool))[Trouble.UNFINISHED_RUN].serious
    other.close()


async def test_a_checkpoint_that_stands_still_is_told(spool: Spool) -> None:
    """With the adapter that it belongs to."""
    key = CheckpointKey("ten_synth_a", "src_list", "list")
    spool.checkpoints.advance(SavedCheckpoint(key, 0, {}), {"page": 1}, datetime.now(UTC))
    (found,) = await examine(spool, LATER)
    assert (found.trouble, found.serious) == (Trouble.STALE_CHECKPOINT, True)
    assert await examine(spool, datetime.now(UTC)) == []


async def test_poison_is_told_until_it_is_given_another_chance(spool: Spool) -> None:
    """Replay rule 13: an operator-visible repair path."""
    now = datetime.now(UTC)
    run = spool.ledger.begin_run("ten_synth_a", "src_list", now)
    verdict = Verdict(Outcome.POISON, "UPSTREAM_500", "it fails", attempts=5)
    key = ItemKey("ten_synth_a", "src_list", "b")
    spool.ledger.settle(0, Item(key, "http://a.example/b", verdict, 0, run.generation, now))
    spool.ledger.finish_run(run, now, RunEnd(planned=1))
    found = (await troubles(spool))[Trouble.POISON]
    assert (found.count, found.source_id) == (1, "src_list")
    assert "UPSTREAM_500" in found.said
    spool.ledger.revive(None, None, now)
    assert await troubles(spool) == {}


async def test_files_that_no_capture_names_are_found_and_removed(filled: Spool) -> None:
    """A crash between the bytes and the ledger leaves them; what captures name stays."""
    orphan = filled.blobs.path(filled.blobs.put(b"nobody's"))
    found = (await troubles(filled))[Trouble.ORPHAN_BLOB]
    assert (found.count, found.serious) == (1, False)
    assert (await troubles(filled, repair=True))[Trouble.ORPHAN_BLOB].repaired
    assert not orphan.exists()
    assert await troubles(filled) == {}
    assert all(filled.capture(one) for one in filled.ledger.captures())


async def test_files_are_left_alone_while_they_are_young_or_a_run_goes_on(filled: Spool) -> None:
    """The run that put them may be about to name them."""
    orphan = filled.blobs.path(filled.blobs.put(b"nobody's"))
    assert await examine(filled, datetime.now(UTC), repair=True) == []
    other = Spool(filled.folder)
    async with other.turn("ten_synth_a", "src_list", lambda: None):
        assert not (await troubles(filled, repair=True))[Trouble.ORPHAN_BLOB].repaired
    other.close()
    assert orphan.exists()


async def test_lost_bytes_are_told_and_a_mended_capture_may_be_sent(filled: Spool) -> None:
    """Refused as damaged, then fetched again: `--repair` lets it go on."""
    kept = next(filled.ledger.captures())
    path = filled.blobs.path(filled.capture(kept).parts[0].sha256)
    body = path.read_bytes()
    filled.ledger.mark_refused(kept.row, "EVIDENCE_DAMAGED", "gone")
    path.unlink()
    found = await troubles(filled)
    assert {Trouble.LOST_BYTES, Trouble.REFUSED} <= set(found)
    path.write_bytes(body)
    assert set(await troubles(filled, repair=True)) == {Trouble.LOST_BYTES}
    assert len(states(filled)) == 1


def test_the_command_tells_findings_by_its_exit_status(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """1 where something is serious, 0 where nothing is; JSON for programs."""
    shop(a=page("A"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    assert invoke("doctor", tmp_path / "spool").exit_code == 0
    for path in (tmp_path / "spool" / "blobs").glob("*/*"):
        os.truncate(path, 1)
    result = invoke("doctor", tmp_path / "spool", "--json")
    (finding,) = json.loads(result.stdout)
    assert (result.exit_code, finding["trouble"], finding["serious"]) == (1, "lost_bytes", True)
