"""A spool of an older version, what a run holds back until it is judged, and many verdicts at once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from prw_sdk.spool import sqlite
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import NEVER_SETTLED, CaptureState, Outcome, RunEnd, RunTally, Settling
from prw_sdk.spool.sqlite import SCHEMA_VERSION, SqliteFile
from tests.sdk.test_spool import KEY, NOW, capture, item


def _spool_of_version(version: int, path: Path) -> None:
    """A spool as that released version left it, with an item, a capture and a checkpoint."""
    connection = sqlite3.connect(path, isolation_level=None)
    for number, block in sqlite._blocks(sqlite._VERSION, "schema.sql"):
        if int(number) <= version:
            sqlite._apply(connection, int(number), block)
    connection.executescript(
        """
        INSERT INTO items VALUES ('ten_synth_a', 'src_list', 'one', 'http://a.example/one', 'stored',
            NULL, NULL, 0, NULL, 'f', 1, 1, '2026-11-30T12:00:00.123456Z');
        INSERT INTO captures (row, tenant, source_id, native_id, captured_at, generation, body, state, receipt_id)
        VALUES (7, 'ten_synth_a', 'src_list', 'one', '2026-11-30T12:00:00.123456Z', 1, x'7b7d', 'kept', NULL),
               (9, 'ten_synth_a', 'src_list', 'two', '2026-11-30T12:00:00.123456Z', 1, x'7b7d', 'submitted', 'r');
        """
    )
    if version >= 2:
        connection.execute("INSERT INTO receipts VALUES (9, 'resolved', '2026-11-30T12:00:00Z')")
    connection.close()


def _schema(path: Path) -> set[tuple[str, str]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    found = {(name, " ".join(text.replace('"', "").split())) for name, text in rows}
    connection.close()
    return found


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_spool_of_every_released_version_is_brought_up_to_date(
    tmp_path: Path, version: int
) -> None:
    """With everything that it holds, and to the schema of a new one."""
    old = tmp_path / "old"
    old.mkdir()
    _spool_of_version(version, old / "ledger.sqlite")
    spool, new = Spool(old), Spool(tmp_path / "new")
    assert [(kept.row, kept.key.native_id, kept.state) for kept in spool.ledger.captures()] == [
        (7, "one", CaptureState.KEPT),
        (9, "two", CaptureState.SUBMITTED),
    ]
    assert spool.ledger.receipt_statuses() == (
        {("src_list", "resolved"): 1} if version >= 2 else {}
    )
    other = replace(item(), key=replace(KEY, native_id="three"))
    assert spool.ledger.settle(NEVER_SETTLED, other, capture())
    assert [kept.row for kept in spool.ledger.captures()] == [7, 9, 10]
    assert spool.ledger.bind("local", "ten_synth_a", NOW) == "ten_synth_a"
    spool.close()
    new.close()
    assert _schema(old / "ledger.sqlite") == _schema(tmp_path / "new" / "ledger.sqlite")


def test_a_held_capture_is_sent_once_its_run_is_found_good(spool: Spool) -> None:
    """And what a bad run held stays, unless a later one finds the same, or a person lets it go."""
    two = replace(item(), key=replace(KEY, native_id="two"))
    bad = spool.ledger.begin_run(KEY.tenant, KEY.source_id, NOW)
    held = [Settling(NEVER_SETTLED, one, capture(), held=True) for one in (item(), two)]
    assert spool.ledger.settle_all(held) == [True, True]
    assert spool.ledger.revive(None, None, NOW) == 0
    assert spool.ledger.finish_run(bad, NOW, RunEnd(2, "ASSERTION_BREACHED", release=False)) == 0
    assert spool.ledger.kept() == []
    good = spool.ledger.begin_run(KEY.tenant, KEY.source_id, NOW)
    assert spool.ledger.settle(1, item(Outcome.UNCHANGED, good.generation))
    assert spool.ledger.finish_run(good, NOW, RunEnd(1)) == 1
    assert [kept.key.native_id for kept in spool.ledger.kept()] == ["one"]
    assert spool.ledger.revive(None, None, NOW) == 1
    assert [kept.key.native_id for kept in spool.ledger.kept()] == ["one", "two"]


def test_verdicts_of_many_items_are_given_in_one_transaction(spool: Spool) -> None:
    """Each on its own version; what is noted of their run goes with those that were applied."""
    run = spool.ledger.begin_run(KEY.tenant, KEY.source_id, NOW)
    stale = Settling(7, item(Outcome.ABSENT))
    fine = Settling(NEVER_SETTLED, replace(item(), key=replace(KEY, native_id="two")), capture())
    seen: list[list[bool]] = []

    def tallies(applied: Sequence[bool]) -> list[RunTally]:
        seen.append(list(applied))
        return [RunTally(run, b"{}")]

    assert spool.ledger.settle_all([stale, fine], tallies) == [False, True]
    assert seen == [[False, True]]
    assert spool.ledger.tally(run) == b"{}"
    spool.ledger.finish_run(run, NOW)
    assert spool.ledger.tally(run) is None


def test_a_ledger_is_closed_only_once_a_thread_has_ended_its_statements(tmp_path: Path) -> None:
    """A task that is cancelled leaves its thread at work; SQLite crashes where a connection is closed under it."""
    file = SqliteFile(tmp_path / "ledger.sqlite")
    closing = threading.Event()

    def work() -> int:
        with file.writing() as connection:
            closing.set()
            statement = "SELECT count(*) FROM (SELECT 1 UNION SELECT 2)"
            return sum(connection.execute(statement).fetchone()[0] for _ in range(5_000))

    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(work)
        assert closing.wait(30)
        file.close()
        assert counted.result() == 10_000
