from __future__ import annotations

import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from prw_base.server.postgres import Cluster, open_cluster, start
from tests.support.waiting import until_sync


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder as ``mktemp -d`` makes it: nobody but its owner may enter."""
    with tempfile.TemporaryDirectory() as name:
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o700
        yield Path(name)
        Cluster("", Path(name) / "state" / "postgres").stop()


def setting(cluster: Cluster, name: str) -> str:
    """A server setting as the server sees it."""
    with psycopg.connect(cluster.dsn) as conn:
        row = conn.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def test_it_starts_in_a_folder_that_only_its_owner_may_enter(closed_folder: Path) -> None:
    """As root too, though PostgreSQL refuses root; and the folder above stays as it was."""
    before = closed_folder.stat()
    cluster = start(closed_folder / "state")
    after = closed_folder.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    assert [path.name for path in closed_folder.iterdir()] == ["state"]
    assert setting(cluster, "listen_addresses") == "127.0.0.1"
    assert (setting(cluster, "fsync"), setting(cluster, "synchronous_commit")) == ("on", "on")
    assert setting(cluster, "idle_in_transaction_session_timeout") == "30s"
    with psycopg.connect(cluster.dsn) as conn:
        conn.execute("CREATE EXTENSION btree_gist; CREATE EXTENSION pg_trgm")


def test_the_server_keeps_nothing_of_root_but_entering(closed_folder: Path) -> None:
    """Started by root its user is unprivileged, and its one capability is to look into folders."""
    pid = start(closed_folder / "state").pid
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    assert "0" not in status["Uid"].split()
    assert int(status["CapEff"], 16) in ((1 << 1, 1 << 2) if os.geteuid() == 0 else (0,))
    assert status["CapEff"] == status["CapPrm"]


def test_a_second_start_attaches(closed_folder: Path) -> None:
    """The demo started twice uses one server."""
    first, second = start(closed_folder / "state"), start(closed_folder / "state")
    assert (first.pid, first.dsn) == (second.pid, second.dsn)


def test_port_and_data_are_kept_between_starts(closed_folder: Path) -> None:
    """Addresses that were printed yesterday still hold today."""
    first = start(closed_folder / "state")
    with psycopg.connect(first.dsn) as conn:
        conn.execute("CREATE TABLE kept (a int)")
    first.stop()
    assert first.pid is None
    second = start(closed_folder / "state")
    assert second.port == first.port
    with psycopg.connect(second.dsn) as conn:
        assert conn.execute("SELECT to_regclass('kept')::text").fetchone() == ("kept",)


def test_it_survives_a_kill(closed_folder: Path) -> None:
    """postmaster.pid is left behind, sessions are orphaned, and a commit is still there."""
    killed = start(closed_folder / "state")
    with psycopg.connect(killed.dsn) as conn:
        conn.execute("CREATE TABLE kept (a int)")
    pid = killed.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    again = start(closed_folder / "state")
    assert again.pid not in (None, pid)
    with psycopg.connect(again.dsn) as conn:
        assert conn.execute("SELECT to_regclass('kept')::text").fetchone() == ("kept",)


def test_a_pid_that_another_program_has_got_is_no_server(closed_folder: Path) -> None:
    """After a restart of the machine the number in postmaster.pid may be anybody's."""
    cluster = start(closed_folder / "state")
    cluster.stop()
    pid_file = cluster.folder / "data" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{cluster.folder / 'data'}\n1\n1\n\n127.0.0.1\n\n")
    os.chown(pid_file, *_owner(cluster.folder / "data"))
    assert cluster.pid is None
    assert start(closed_folder / "state").pid is not None


def test_another_port_is_taken_where_the_kept_one_is_in_use(closed_folder: Path) -> None:
    """Something else may have got it meanwhile."""
    first = start(closed_folder / "state")
    first.stop()
    until_sync(lambda: first.pid is None)
    other = start(closed_folder / "other")
    first.secrets.set_number("port", other.port)
    try:
        assert start(closed_folder / "state").port != other.port
    finally:
        other.stop()


def test_secrets_are_the_owners_alone(closed_folder: Path) -> None:
    """Passwords are made, kept in one file of mode 0600, and needed."""
    cluster = start(closed_folder / "state")
    mode = (cluster.folder / "secrets.json").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(make_conninfo(cluster.dsn, password="guess"))
    assert not (cluster.folder / "password.new").exists()


def test_a_given_dsn_wins(tmp_path: Path, cluster: Cluster) -> None:
    """Nothing is started where there is a server already; stopping leaves it alone."""
    given = open_cluster(tmp_path, cluster.dsn)
    assert conninfo_to_dict(given.dsn) == conninfo_to_dict(cluster.dsn)
    assert not (tmp_path / "postgres" / "data").exists()
    given.stop()
    with psycopg.connect(cluster.dsn) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def _owner(path: Path) -> tuple[int, int]:
    return path.stat().st_uid, path.stat().st_gid
