"""``prw resolver``: what an operator types, from an empty database to a collector's token."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from prw.errors import Code, PrwError
from prw_resolver.cli import app

PLACE = ("--tenant", "ten_synth_a", "--catalog", "main")


@pytest.fixture
def prw(resolver_database: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs ``prw resolver …`` on the test's database; answers what ``--json`` printed."""
    monkeypatch.setenv("PRW_RESOLVER_DATABASE_DSN", resolver_database["resolver_app"])
    monkeypatch.setenv("PRW_RESOLVER_OWNER_DSN", resolver_database["owner"])
    monkeypatch.setenv("PRW_RESOLVER_STATE_FOLDER", str(tmp_path))

    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.output)

    return run


def put_places(prw: Any) -> None:
    """A catalogue with one source."""
    prw("catalog", "put", "--tenant", "ten_synth_a", "main")
    prw("source", "put", *PLACE, "src_one", "--trusted-to-introduce", "--locale", "de-DE")


def test_a_migrated_database_stays_as_it_is(prw: Any) -> None:
    """A second run applies nothing."""
    assert prw("migrate") == []


def test_a_collector_is_provisioned_step_by_step(prw: Any) -> None:
    """Catalogue, source, client: each prints what it did."""
    put_places(prw)
    [made] = prw("client", "provision", *PLACE, "--instance", "ci_one", "--worker", "cw_one",
                 "--source", "src_one")  # fmt: skip
    assert made["subject"] == "ci_one"
    assert made["token"].count(".") == 2
    [ended] = prw("client", "revoke", "--tenant", "ten_synth_a", "ci_one")
    assert ended["client_id"] == made["client_id"]


def test_a_token_can_go_to_a_file_that_only_its_owner_reads(prw: Any, tmp_path: Path) -> None:
    """It is then not printed."""
    put_places(prw)
    file = tmp_path / "token"
    [made] = prw("operator", "provision", *PLACE, "anna", "--role", "reviewer",
                 "--token-file", str(file))  # fmt: skip
    assert "token" not in made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text("ascii").count(".") == 2


@pytest.mark.parametrize(("hint", "text"), [("locale", "deutsch"), ("currency", "euro")])
def test_a_market_that_no_page_is_read_by_is_refused(prw: Any, hint: str, text: str) -> None:
    """Prices read by a misspelt locale would be wrong ones."""
    put_places(prw)
    with pytest.raises(PrwError) as refused:
        prw("source", "put", *PLACE, "src_one", f"--{hint}", text)
    assert (refused.value.code, refused.value.field) == (Code.VALIDATION_FAILED, hint)


def test_a_refusal_is_the_table_s(prw: Any) -> None:
    """What is missing is said with its code, for the command to print."""
    with pytest.raises(PrwError) as refused:
        prw("source", "put", *PLACE, "src_one")
    assert refused.value.code is Code.NOT_FOUND


def test_migrating_a_given_database_needs_the_owner_s_login(
    prw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own login may not change the schema, and the refusal names the setting."""
    monkeypatch.delenv("PRW_RESOLVER_OWNER_DSN")
    with pytest.raises(PrwError, match="PRW_RESOLVER_OWNER_DSN"):
        prw("migrate")


def test_a_vocabulary_is_published_once(prw: Any) -> None:
    """The packaged one, whose second publication changes nothing."""
    put_places(prw)
    [first] = prw("vocabulary", "publish", *PLACE)
    [again] = prw("vocabulary", "publish", *PLACE)
    assert first["new"] == again["known"] > 0
    assert (again["new"], again["active_generation"]) == (0, 1)


def test_without_dead_letters_there_is_nothing_to_take_up(prw: Any) -> None:
    """Both lists are empty, and said so as JSON."""
    put_places(prw)
    assert prw("jobs", "dead", "--tenant", "ten_synth_a") == []
    assert prw("jobs", "redrive", "--tenant", "ten_synth_a") == []


@pytest.mark.parametrize(
    "path",
    [
        [],
        ["catalog"],
        ["source"],
        ["client"],
        ["operator"],
        ["vocabulary"],
        ["jobs"],
        ["serve"],
        ["work"],
    ],
)
def test_help_reads_at_each_level(path: list[str]) -> None:
    """Every command says what it does."""
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_a_database_that_was_not_migrated_is_told_with_the_remedy(
    prw: Any, resolver_database: dict[str, str]
) -> None:
    """Before a server serves as before a command looks."""
    with psycopg.connect(resolver_database["superuser"]) as conn:
        conn.execute("alter schema resolver rename to elsewhere")
    for command in (
        ("jobs", "dead", "--tenant", "ten_synth_a"),
        ("catalog", "put", "--tenant", "ten_synth_a", "main"),
    ):
        with pytest.raises(PrwError, match="run `prw resolver migrate`") as refused:
            prw(*command)
        assert refused.value.code is Code.VALIDATION_FAILED
