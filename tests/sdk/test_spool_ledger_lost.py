"""A spool whose ledger is gone is no fresh spool: it stops, says what to restore, and leaves every byte as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from prw_sdk.spool.folder import Spool
from prw_sdk.spool.sqlite import SpoolUnusable
from tests.sdk.commanding import invoke
from tests.sdk.jobs import page

Shop = Callable[..., None]


def missing(ledger: Path) -> None:
    """The file is gone."""
    ledger.unlink()


def empty(ledger: Path) -> None:
    """The file is cut to nothing, as a full disk or a bad copy leaves it."""
    ledger.write_bytes(b"")


def without_tables(ledger: Path) -> None:
    """The file is a database that holds nothing, as one does whose log was lost."""
    ledger.unlink()
    connection = sqlite3.connect(ledger)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()


def held(folder: Path) -> Mapping[Path, bytes]:
    """Every file of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("lose", [missing, empty, without_tables])
@pytest.mark.parametrize("command", ["run", "status", "doctor", "push"])
def test_a_spool_whose_ledger_is_lost_stops_everything_and_loses_nothing(
    shop: Shop, config: Path, tmp_path: Path, lose: Callable[[Path], None], command: str
) -> None:
    """A new ledger beside the bytes of the old one would make orphans of them, which `doctor --repair` removes."""
    shop(a=page("A"))
    folder = tmp_path / "spool"
    assert invoke("run", "-c", config, "--local", folder).exit_code == 0
    lose(folder / "ledger.sqlite")
    before = held(folder)
    config.write_text(config.read_text() + '\n[resolver]\naddress = "127.0.0.1:1"\n')
    arguments: dict[str, tuple[object, ...]] = {
        "run": ("-c", config, "--local", folder),
        "doctor": (folder, "--repair"),
        "push": (folder, "-c", config),
    }
    result = invoke(command, *arguments.get(command, (folder,)))
    assert result.exit_code == 2, result.output
    assert "Restore ledger.sqlite" in result.stderr
    assert held(folder) == before


def test_a_log_without_its_ledger_is_not_thrown_away(tmp_path: Path) -> None:
    """SQLite removes the log of a database that it begins; the log may be all that is left."""
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "ledger.sqlite-wal").write_bytes(b"the last verdicts")
    with pytest.raises(SpoolUnusable, match="Restore ledger"):
        Spool(folder)
    assert held(folder) == {folder / "ledger.sqlite-wal": b"the last verdicts"}


def test_an_empty_ledger_beside_nothing_is_begun(tmp_path: Path) -> None:
    """A process that was killed while it made its spool leaves that, and nothing is lost with it."""
    (tmp_path / "ledger.sqlite").touch()
    Spool(tmp_path).close()
    assert (tmp_path / "ledger.sqlite").stat().st_size
