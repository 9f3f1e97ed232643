from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from prw_base.server import provision
from prw_base.server.migrations import migrate, pending
from prw_base.server.postgres import Cluster
from prw_base.server.sql import load

NAMES = ["0001.schema", "0002.note_body"]


@pytest.fixture
def empty(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A provisioned database without any migration."""
    name = f"empty_{abs(hash(request.node.name))}"
    yield provision.provision(cluster, name, ("product_app",))
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        admin.execute(
            psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg.sql.Identifier(name))
        )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable folder for files of a test."""
    folder = tmp_path / f"given_{tmp_path.name}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_each_migration_is_applied_once(empty: dict[str, str]) -> None:
    """The second run finds nothing to do."""
    assert pending(empty["owner"], "tests.base.sample") == NAMES
    assert migrate(empty["owner"], "tests.base.sample") == NAMES
    assert migrate(empty["owner"], "tests.base.sample") == []
    assert pending(empty["owner"], "tests.base.sample") == []


def test_everything_belongs_to_the_owner_role(empty: dict[str, str]) -> None:
    """No role that logs in owns a table (state, "Tenants")."""
    migrate(empty["owner"], "tests.base.sample")
    with psycopg.connect(empty["superuser"]) as conn:
        owners = conn.execute(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname IN ('sample', 'public')"
        ).fetchall()
        body = conn.execute("SELECT sample.kind(2), sample.kind(0)").fetchone()
    assert owners == [(provision.OWNER,)]
    assert body == ("100 %; many", "none")


def test_a_file_that_fails_leaves_nothing(empty: dict[str, str], package: Path) -> None:
    """Work and mark are one transaction, and what comes after waits."""
    (package / "0001.good.sql").write_text("CREATE TABLE public.good (a int);")
    (package / "0002.bad.sql").write_text("CREATE TABLE public.bad (a int); SELECT 1 / 0;")
    (package / "0003.late.sql").write_text("CREATE TABLE public.late (a int);")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(empty["owner"], package.name)
    assert pending(empty["owner"], package.name) == ["0002.bad", "0003.late"]
    with psycopg.connect(empty["superuser"]) as conn:
        assert conn.execute("SELECT to_regclass('public.bad')").fetchone() == (None,)


def test_two_migrators_do_not_meet(empty: dict[str, str]) -> None:
    """The second waits for the first and then has nothing to do."""
    applied: list[list[str]] = []
    runs = [
        threading.Thread(
            target=lambda: applied.append(migrate(empty["owner"], "tests.base.sample"))
        )
        for _ in range(3)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(applied) == [[], [], NAMES]


@pytest.mark.parametrize("name", ["1.short.sql", "0001-dash.sql", "0001.Upper.sql"])
def test_a_file_with_another_name_is_refused(
    empty: dict[str, str], package: Path, name: str
) -> None:
    """Its place in the order would be a guess."""
    (package / name).write_text("SELECT 1;")
    with pytest.raises(ValueError, match="NNNN"):
        migrate(empty["owner"], package.name)


def test_two_files_with_one_number_are_refused(empty: dict[str, str], package: Path) -> None:
    """Two branches made them; somebody has to say which is first."""
    for name in ("0001.a.sql", "0001.b.sql"):
        (package / name).write_text("SELECT 1;")
    with pytest.raises(ValueError, match="share a number"):
        migrate(empty["owner"], package.name)


def test_provisioning_twice_changes_nothing(cluster: Cluster, empty: dict[str, str]) -> None:
    """Passwords are kept, and nobody else may connect."""
    name = psycopg.conninfo.conninfo_to_dict(empty["owner"])["dbname"]
    assert provision.provision(cluster, str(name), ("product_app",)) == empty
    provision.provision(cluster, "empty_other", provision.RESOLVER_ROLES)
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(cluster.dsn_for("empty_other", "product_app"))


def test_named_blocks_are_read_with_their_comment(package: Path) -> None:
    """SQL stands in a file beside the store that runs it."""
    (package / "store.sql").write_text(
        "-- name: find_one\n-- One note.\nSELECT 1\n\n-- name: find_all\n-- All.\nSELECT 2\n"
    )
    blocks = load(package.name)
    assert blocks == {"find_one": "-- One note.\nSELECT 1", "find_all": "-- All.\nSELECT 2"}


@pytest.mark.parametrize(
    "text",
    [
        "-- name: a\n-- x\nSELECT 1\n-- name: a\n-- y\nSELECT 2\n",
        "-- name: a\nSELECT 1\n",
        "-- name: a\n-- only a comment\n",
    ],
)
def test_a_block_that_is_not_told_apart_is_refused(package: Path, text: str) -> None:
    """Twice the same name, no comment, or no statement."""
    (package / "bad.sql").write_text(text)
    with pytest.raises(ValueError, match=r"bad\.sql"):
        load(package.name, "bad.sql")
