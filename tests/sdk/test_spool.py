"""The ledger, the blobs and the checkpoints of a spool."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw.errors import Code, PrwError
from prw_sdk.evidence import AdapterVersion, Capture, Citation, Egress, Part, Presence, Region
from prw_sdk.spool import codec
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing, Blobs
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import (
    NEVER_SETTLED,
    CaptureState,
    CheckpointKey,
    Item,
    ItemKey,
    NewCapture,
    Outcome,
    Verdict,
    after_failure,
    sanitised,
)
from prw_sdk.spool.sqlite import SCHEMA_VERSION, SpoolUnusable

NOW = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
KEY = ItemKey("ten_synth_a", "src_list", "one")
CHECKPOINT = CheckpointKey("ten_synth_a", "src_list", "list")


def item(outcome: Outcome = Outcome.STORED, generation: int = 1, **verdict: object) -> Item:
    """An item with that verdict."""
    said = replace(Verdict(outcome), **verdict)  # type: ignore[arg-type]  # fields of Verdict
    return Item(KEY, "http://a.example/one", said, 0, generation, NOW)


def capture(moment: datetime = NOW) -> NewCapture:
    """A capture of that moment."""
    return NewCapture(moment, b"{}")


def test_a_verdict_and_its_capture_are_kept_together(spool: Spool) -> None:
    """One transaction, one capture."""
    assert spool.ledger.settle(NEVER_SETTLED, item(fingerprint="f"), capture())
    found = spool.ledger.item(KEY)
    assert found == replace(item(fingerprint="f"), version=1)
    assert [kept.key for kept in spool.ledger.kept()] == [KEY]


def test_late_work_does_not_overwrite_newer_work(spool: Spool) -> None:
    """A verdict holds only for the version that it was formed on (replay rule 8)."""
    spool.ledger.settle(NEVER_SETTLED, item(), capture())
    spool.ledger.settle(1, item(Outcome.ABSENT, 2), capture(NOW + timedelta(seconds=1)))
    assert not spool.ledger.settle(1, item(Outcome.STORED, 1), capture(NOW + timedelta(hours=1)))
    assert not spool.ledger.settle(NEVER_SETTLED, item(), capture(NOW + timedelta(hours=1)))
    found = spool.ledger.item(KEY)
    assert found is not None
    assert (found.verdict.outcome, found.version) == (Outcome.ABSENT, 2)
    assert len(list(spool.ledger.captures())) == 2


def test_an_item_that_never_was_cannot_be_overwritten(spool: Spool) -> None:
    """A version that is not there is no ground for a verdict."""
    assert not spool.ledger.settle(7, item())
    assert spool.ledger.item(KEY) is None


def test_a_second_capture_of_one_run_fails_whole(spool: Spool) -> None:
    """The ledger itself refuses it, and the verdict with it."""
    spool.ledger.settle(NEVER_SETTLED, item(), capture())
    with pytest.raises(sqlite3.IntegrityError):
        spool.ledger.settle(1, item(Outcome.REJECTED), capture(NOW + timedelta(seconds=1)))
    found = spool.ledger.item(KEY)
    assert found is not None
    assert found.verdict.outcome is Outcome.STORED


def test_an_unfinished_run_is_taken_up_and_a_finished_one_is_followed(spool: Spool) -> None:
    """A generation is a plan, not a process."""
    first = spool.ledger.begin_run("t", "s", NOW)
    again = spool.ledger.begin_run("t", "s", NOW)
    assert (first.generation, first.resumed) == (1, False)
    assert (again.generation, again.resumed) == (1, True)
    spool.ledger.finish_run(again, NOW)
    spool.ledger.finish_run(first, NOW)
    assert spool.ledger.begin_run("t", "s", NOW).generation == 2


def test_due_items_are_those_whose_time_has_come(spool: Spool) -> None:
    """Of this tenant and source only."""
    spool.ledger.settle(NEVER_SETTLED, item(Outcome.RETRY_AT, retry_at=NOW + timedelta(minutes=1)))
    assert spool.ledger.due(KEY.tenant, KEY.source_id, NOW) == []
    later = NOW + timedelta(minutes=1)
    assert [due.key for due in spool.ledger.due(KEY.tenant, KEY.source_id, later)] == [KEY]
    assert spool.ledger.due("ten_synth_b", KEY.source_id, later) == []


def test_each_failure_puts_an_item_off_for_longer_until_its_budget_is_spent() -> None:
    """Then it is set aside, and no earlier (replay rule 13)."""
    failed, earlier, waits = Verdict(Outcome.RETRY_AT, "UPSTREAM_503"), None, []
    for _ in range(3):
        earlier = after_failure(failed, earlier, 4, None, NOW)
        assert earlier.retry_at is not None
        waits.append(earlier.retry_at - NOW)
    assert waits == [timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4)]
    spent = after_failure(failed, earlier, 4, None, NOW)
    assert (spent.outcome, spent.retry_at, spent.attempts) == (Outcome.POISON, None, 4)


def test_an_item_is_put_off_for_at_least_what_the_source_asked() -> None:
    """Its own backoff is a floor, too."""
    failed = Verdict(Outcome.RETRY_AT)
    assert after_failure(failed, None, 9, timedelta(hours=3), NOW).retry_at == NOW + timedelta(
        hours=3
    )


def test_retry_gives_what_was_set_aside_and_refused_another_chance(spool: Spool) -> None:
    """The repair command of replay rule 13."""
    spool.ledger.settle(NEVER_SETTLED, item(Outcome.POISON, attempts=5))
    other = replace(item(), key=replace(KEY, native_id="two"))
    spool.ledger.settle(NEVER_SETTLED, other, capture())
    spool.ledger.mark_refused(1, "VALIDATION_FAILED", "no")
    assert spool.ledger.kept() == []
    assert spool.ledger.revive(None, None, NOW) == 2
    (due,) = spool.ledger.due(KEY.tenant, KEY.source_id, NOW)
    assert due.verdict.attempts == 0
    assert len(spool.ledger.kept()) == 1


def test_a_receipt_is_noted_once(spool: Spool) -> None:
    """A capture that has one is not sent again, nor marked as refused later."""
    spool.ledger.settle(NEVER_SETTLED, item(), capture())
    spool.ledger.mark_submitted(1, "rcp_1")
    spool.ledger.mark_submitted(1, "rcp_2")
    spool.ledger.mark_refused(1, "X", "late")
    (kept,) = spool.ledger.captures()
    assert (kept.state, kept.receipt_id) == (CaptureState.SUBMITTED, "rcp_1")


def test_errors_are_kept_as_one_printable_line() -> None:
    """Whatever a source or an adapter put into them."""
    assert sanitised("a\n\tb\x1b[31m  c") == "a b[31m c"
    assert len(sanitised("x" * 9999)) == 1000


def test_a_checkpoint_advances_from_what_was_loaded_only(spool: Spool) -> None:
    """A stale run gets the persisted winner (replay rule 7)."""
    start = spool.checkpoints.load(CHECKPOINT)
    assert (start.revision, start.state) == (0, {})
    first = spool.checkpoints.advance(start, {"done": 1}, NOW)
    assert spool.checkpoints.advance(first, {"done": 2}, NOW).revision == 2
    for stale in (start, first):
        with pytest.raises(PrwError) as caught:
            spool.checkpoints.advance(stale, {"done": 9}, NOW)
        assert caught.value.code is Code.CHECKPOINT_CONFLICT
        assert caught.value.details == {"revision": "2", "state": '{"done":2}'}
    assert spool.checkpoints.load(CHECKPOINT).state == {"done": 2}


def _race(folder: Path, number: int) -> bool:
    spool = Spool(folder)
    try:
        spool.checkpoints.advance(spool.checkpoints.load(CHECKPOINT), {"winner": number}, NOW)
    except PrwError:
        return False
    finally:
        spool.close()
    return True


def _settle_many(folder: Path, number: int) -> int:
    spool = Spool(folder)
    won = 0
    for native in range(20):
        one = replace(item(), key=replace(KEY, native_id=str(native)))
        moment = NOW + timedelta(seconds=number)
        won += spool.ledger.settle(NEVER_SETTLED, one, capture(moment))
    spool.close()
    return won


def test_many_processes_settle_each_item_once(tmp_path: Path) -> None:
    """Duplicates at once have one durable effect (replay rule 2)."""
    Spool(tmp_path).close()
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        won = list(pool.map(_settle_many, [tmp_path] * 4, range(4)))
    assert sum(won) == 20
    spool = Spool.existing(tmp_path)
    assert len(list(spool.ledger.captures())) == 20
    spool.close()


def test_a_spool_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    """It says what to do instead."""
    Spool(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(SpoolUnusable, match="upgrade prw-sdk"):
        Spool(tmp_path)


def test_a_folder_without_a_spool_is_not_made_into_one(tmp_path: Path) -> None:
    """A mistyped folder is no empty spool."""
    with pytest.raises(SpoolUnusable):
        Spool.existing(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_bytes_are_kept_under_their_digest_and_twice_is_once(tmp_path: Path) -> None:
    """A file appears whole or not at all, and nothing else stays behind."""
    blobs = Blobs(tmp_path)
    sha256 = blobs.put(b"evidence")
    assert blobs.put(b"evidence") == sha256
    assert blobs.get(sha256) == b"evidence"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [blobs.path(sha256)]


def test_a_damaged_file_is_noticed_and_a_short_one_mended(tmp_path: Path) -> None:
    """What is read is what the name says."""
    blobs = Blobs(tmp_path)
    sha256 = blobs.put(b"evidence")
    blobs.path(sha256).write_bytes(b"Evidence")
    with pytest.raises(BlobDamaged):
        blobs.get(sha256)
    blobs.path(sha256).write_bytes(b"ev")
    blobs.put(b"evidence")
    assert blobs.get(sha256) == b"evidence"
    with pytest.raises(BlobMissing):
        blobs.get("0" * 64)


async def test_the_turn_of_a_source_is_held_by_one_and_passed_on(spool: Spool) -> None:
    """The second one is told to wait, and that it had to."""
    told = asyncio.Event()

    async def second() -> bool:
        async with spool.turn("t", "s", told.set) as waited:
            return waited

    async with spool.turn("t", "s", told.set) as waited:
        assert not waited
        other = asyncio.create_task(second())
        await told.wait()
        async with spool.turn("t", "other", lambda: None) as elsewhere:
            assert not elsewhere
    assert await other


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)


@given(
    TEXT.filter(bool),
    st.binary(max_size=50),
    st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 1)),  # noqa: DTZ001  # hypothesis wants it naive
    st.sampled_from(Presence),
    st.dictionaries(TEXT, TEXT | st.integers() | st.booleans(), max_size=3),
)
def test_a_capture_survives_the_spool(
    native_id: str, body: bytes, at: datetime, presence: Presence, config: dict[str, object]
) -> None:
    """Encoded once, decoded to the same value."""
    part = Part(
        role="page",
        sha256="0" * 64,
        body=body,
        media_type="text/html",
        url_asked="http://a.example/",
        url_reached="http://a.example/",
        http_status=200,
        fetched_at=at,
        headers=(("etag", "1"),),
        cites=Citation(at, "1" * 64),
    )
    whole = Capture(
        source_id="src_list",
        native_record_id=native_id,
        captured_at=at,
        adapter=AdapterVersion("list", "1.0.0"),
        parts=(part,),
        config=config,
        presence=presence,
        execution_region=Region("DE", "x"),
        egress=Egress("DE", verified=True),
    )
    encoded = codec.encode(whole)
    assert codec.decode(encoded, lambda sha256: body) == whole
    assert codec.encode(codec.decode(encoded, lambda sha256: body)) == encoded


def test_a_damaged_file_of_the_right_length_is_mended_by_keeping_its_bytes_again(
    tmp_path: Path,
) -> None:
    """A file is known by what it holds, not by its length."""
    blobs = Blobs(tmp_path)
    sha256 = blobs.put(b"evidence")
    blobs.path(sha256).write_bytes(b"Evidence")
    assert blobs.has(sha256, 8)
    assert not blobs.is_whole(sha256)
    blobs.put(b"evidence")
    assert blobs.get(sha256) == b"evidence"


def test_bytes_that_another_process_left_are_durable_before_they_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its names may not have reached the disk when it was killed, so both folders are flushed once more."""
    Blobs(tmp_path).put(b"evidence")
    synced: list[Path] = []
    monkeypatch.setattr("prw_sdk.spool.blobs.sync_folder", synced.append)
    sha256 = Blobs(tmp_path).put(b"evidence")
    assert set(synced) == {tmp_path, tmp_path / sha256[:2]}


def test_the_folder_of_a_spool_is_durable_when_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each of the folders above it that had to be made."""
    synced: list[Path] = []
    monkeypatch.setattr("prw_base.files.sync_folder", synced.append)
    Spool(tmp_path / "a" / "spool").close()
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "spool"]


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """It is not made into a spool."""
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(SpoolUnusable, match="something else"):
        Spool(tmp_path)
    tables = sqlite3.connect(tmp_path / "ledger.sqlite").execute("SELECT name FROM sqlite_schema")
    assert [name for (name,) in tables] == ["theirs"]


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    """In one line, not as a defect of ours."""
    (tmp_path / "ledger.sqlite").write_bytes(b"something else, long enough to be looked at" * 30)
    with pytest.raises(SpoolUnusable, match="not a database"):
        Spool(tmp_path)


def test_a_ledger_that_is_damaged_while_it_is_read_is_told(spool: Spool) -> None:
    """A table that is gone is the spool's trouble, with the same words as a full disk."""
    connection = sqlite3.connect(spool.folder / "ledger.sqlite")
    connection.execute("DROP TABLE items")
    connection.close()
    with pytest.raises(SpoolUnusable, match="cannot be used"):
        spool.ledger.item(KEY)


def test_captures_of_no_tenant_go_to_one_tenant_only(spool: Spool) -> None:
    """The first one holds."""
    assert spool.ledger.bind("local", "ten_synth_a", NOW) == "ten_synth_a"
    assert spool.ledger.bind("local", "ten_synth_b", NOW) == "ten_synth_a"
    assert spool.ledger.bind("other", "ten_synth_b", NOW) == "ten_synth_b"


@pytest.mark.parametrize("unfinished", [False, True])
def test_retry_fetches_damaged_items_again_unless_their_run_still_goes_on(
    spool: Spool, unfinished: bool
) -> None:
    """One run keeps one capture of an item; the next one may keep another."""
    run = spool.ledger.begin_run(KEY.tenant, KEY.source_id, NOW)
    spool.ledger.settle(NEVER_SETTLED, item(), capture())
    if not unfinished:
        spool.ledger.finish_run(run, NOW)
    spool.ledger.mark_refused(1, "EVIDENCE_DAMAGED", "gone")
    spool.ledger.revive(None, None, NOW)
    assert len(spool.ledger.due(KEY.tenant, KEY.source_id, NOW)) == (not unfinished)
