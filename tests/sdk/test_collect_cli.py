"""The command `prw collect`: settings, tables, JSON and exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prw_sdk.cli.endpoints import endpoint
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.cli.settings import load
from tests.sdk.commanding import invoke, summary
from tests.sdk.jobs import page
from tests.sdk.misbehaving import Site, answer

Shop = Callable[..., None]


def test_a_local_run_fills_a_spool_and_prints_a_summary(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """Progress goes to standard error as JSON lines where there is no terminal."""
    shop(a=page("A"), gone=answer(status=404))
    result = invoke("run", "--config", config, "--local", tmp_path / "spool", "--json")
    assert result.exit_code == 0, result.stderr
    row = summary(result)
    assert (row["source"], row["kept"], row["stored"], row["absent"]) == ("src_list", 2, 1, 1)
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert {event["event"] for event in events} >= {"started", "planned", "settled", "ended"}


def test_a_second_run_changes_nothing(shop: Shop, config: Path, tmp_path: Path) -> None:
    """The table says so."""
    shop(a=page("A"))
    run = ("run", "-c", config, "--local", tmp_path / "spool", "--json")
    invoke(*run)
    row = summary(invoke(*run))
    assert (row["kept"], row["stored"], row["unchanged"]) == (0, 0, 1)


def test_records_are_read_from_the_spool_with_their_claims(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """A table for people; with --json one record a line, each claim with its locator."""
    shop(a=page("A title"), about=answer(b"nothing"), gone=answer(status=404))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    table = invoke("records", tmp_path / "spool")
    assert "A title" in table.stdout
    lines = [
        json.loads(one)
        for one in invoke("records", tmp_path / "spool", "--json").stdout.splitlines()
    ]
    by_item = {line["native_record_id"]: line for line in lines}
    assert by_item["a"]["claims"] == [
        {
            "attribute": "core:title",
            "value_as_stated": "A title",
            "origin": "adapter",
            "locator": {"part_role": "page", "selector": {"type": "css", "value": "title"}},
        }
    ]
    assert by_item["about"]["code"] == "NOT_A_RECORD"
    assert by_item["gone"]["code"] == "ABSENT"
    assert table.exit_code == 0


def test_a_reader_that_fails_is_told_by_the_exit_status(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """The other records are printed all the same."""
    shop(a=page("A"), b=page("unreadable"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    result = invoke("records", tmp_path / "spool", "--json")
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 2)


def test_trouble_is_told_by_status_and_exit_status_and_mended_by_retry(
    site: Site, shop: Shop, config: Path, tmp_path: Path
) -> None:
    """What was put off is listed with its reason."""
    shop(a=page("A"), b=answer(status=500))
    run = ("run", "-c", config, "--local", tmp_path / "spool")
    assert invoke(*run).exit_code == 1
    status = invoke("status", tmp_path / "spool")
    assert "UPSTREAM_500" in status.stdout
    site.serve("/p/b", page("B"))
    assert invoke("retry", tmp_path / "spool", "--item", "b").exit_code == 0
    assert invoke(*run).exit_code == 0
    (row,) = json.loads(invoke("status", tmp_path / "spool", "--json").stdout)
    assert (row["retry_at"], row["kept"]) == (0, 2)


def test_a_failing_plan_is_told_by_the_exit_status(config: Path, tmp_path: Path) -> None:
    """With the reason in the summary."""
    result = invoke("run", "-c", config, "--local", tmp_path / "spool", "--json")
    assert result.exit_code == 1
    assert summary(result)["ended"].startswith("NOT_FOUND: ")


@pytest.mark.parametrize("command", ["push", "records", "status", "retry"])
def test_a_folder_without_a_spool_is_wrong_usage(
    config: Path, tmp_path: Path, command: str
) -> None:
    """And no spool is made there."""
    result = invoke(command, tmp_path / "nothing")
    assert result.exit_code == 2
    assert not (tmp_path / "nothing").exists()


def test_a_place_that_cannot_hold_a_spool_is_wrong_usage(config: Path, tmp_path: Path) -> None:
    """Told in one line, before anything is fetched."""
    taken = tmp_path / "taken"
    taken.write_text("")
    for place in (taken, taken / "below"):
        result = invoke("run", "-c", config, "--local", place)
        assert result.exit_code == 2
        assert f"{place} cannot hold a spool" in result.stderr


def test_a_run_needs_a_resolver_or_a_folder(config: Path) -> None:
    """The message says what to write."""
    result = invoke("run", "-c", config)
    assert result.exit_code == 2
    assert "run with --local DIR" in result.stderr


def test_an_unreachable_resolver_is_not_available_now(
    shop: Shop, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 3, and the spool is as it was."""
    shop(a=page("A"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    section = '[resolver]\naddress="127.0.0.1:1"\nworker="w"\ninstance="i"\n'
    section += "retry = { base = 0.001, cap = 0.01, attempts = 2 }\n"
    config.write_text(config.read_text("utf-8") + section, "utf-8")
    monkeypatch.setenv("PRW_COLLECT_RESOLVER__TOKEN", "a-token")
    result = invoke("push", tmp_path / "spool", "-c", config)
    assert result.exit_code == 3
    assert "UNAVAILABLE" in result.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("contact =", "contct ="), "contct"),
        (('id = "src_list"', 'id = "a b"'), "source.0.id"),
        (('"127.0.0.1:', '"127.0.0.1'), "source.0.resolve"),
        (("index =", "indx ="), "source src_list: settings: "),
        (('adapter = "list"', 'adapter = "lst"'), "installed: list@1.0.0"),
        (('contact = "ops@example.org"', ""), "contact: write a mail address"),
        (('"ops@example.org"', '"me"'), "contact"),
        (('currency = "EUR"', 'locale = "deutsch"'), "source.0.locale"),
        ((' = "127.0.0.1:', ' = "localhost:'), "source.0.resolve"),
        ((' = "127.0.0.1:', ' = "localhost:'), "leads to an IP address"),
        (("per_second = 1000", "per_second = 0"), "rate.per_second: should be greater than 0"),
        (("[[source]]", "[[source"), "not TOML"),
        (('currency = "EUR"', 'currency = "euro"'), "source.0.currency"),
        (
            ('currency = "EUR"', 'headers = {"a.example" = {X = "plain"}}'),
            "write env:NAME or file:PATH",
        ),
    ],
)
def test_wrong_settings_are_told_by_field_and_remedy(
    config: Path, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    """Exit status 2, before anything is fetched."""
    config.write_text(config.read_text("utf-8").replace(*change), "utf-8")
    result = invoke("run", "-c", config, "--local", tmp_path / "spool")
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_source_that_is_not_there_is_told_with_those_that_are(
    config: Path, tmp_path: Path
) -> None:
    """So that a typing error is seen."""
    result = invoke("run", "src_lst", "-c", config, "--local", tmp_path / "spool")
    assert result.exit_code == 2
    assert "no source src_lst (sources: src_list)" in result.stderr


def test_a_source_may_stand_once(config: Path) -> None:
    """Two tables of one id would share their items."""
    text = config.read_text("utf-8")
    source = text[text.index("[[source]]") :]
    config.write_text(text + "\n" + source, "utf-8")
    with pytest.raises(SettingsUnusable, match="more than once"):
        load(config)


def test_the_environment_is_above_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what differs from one machine to the next."""
    monkeypatch.setenv("PRW_COLLECT_CONTACT", "https://example.org/bot")
    monkeypatch.setenv("PRW_COLLECT_RATE__AT_ONCE", "3")
    settings = load(config)
    assert (settings.contact, settings.rate.at_once) == ("https://example.org/bot", 3)
    assert settings.rate.per_second == 1000


def test_secrets_come_from_the_environment_or_a_file(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never from the settings themselves."""
    (tmp_path / "key").write_text("from-file\n")
    monkeypatch.setenv("SHOP_KEY", "from-env")
    headers = f'headers = {{"A.example" = {{X = "env:SHOP_KEY", Y = "file:{tmp_path}/key"}}}}'
    config.write_text(config.read_text("utf-8").replace('currency = "EUR"', headers), "utf-8")
    (source,) = load(config).source
    assert source.credentials() == {"a.example": {"X": "from-env", "Y": "from-file"}}


def test_endpoints_are_host_and_port() -> None:
    """IPv6 in brackets."""
    assert endpoint("A.example:80") == ("a.example", 80)
    assert endpoint("[::1]:8080") == ("::1", 8080)
    for wrong in ("a.example", ":80", "a:0", "a:99999", "a:b"):
        with pytest.raises(ValueError, match="host:port"):
            endpoint(wrong)


def test_the_printed_example_is_usable(tmp_path: Path) -> None:
    """As it stands, and with its comments taken away."""
    text = invoke("example").stdout
    path = tmp_path / "sources.toml"
    path.write_text(text, "utf-8")
    assert load(path).spool == tmp_path / "spool"
    path.write_text(re.sub(r"^# (?=\S+ = |\[)", "", text, flags=re.MULTILINE), "utf-8")
    settings = load(path)
    assert settings.resolver is not None
    assert settings.source[0].rules().allow_private == {"shop.internal:8080"}


def test_help_names_every_command_and_the_exit_statuses() -> None:
    """At the level of the group."""
    text = invoke("--help").stdout
    assert all(
        name in text for name in ("run", "push", "records", "status", "retry", "Exit status")
    )


def test_ctrl_c_ends_a_run_in_order(site: Site, shop: Shop, tmp_path: Path, config: Path) -> None:
    """Exit status 130, and the next run resumes."""
    shop(**{f"p{number}": page("x") for number in range(30)})
    program = (
        "import sys; from tests.sdk.commanding import INSTALLED\n"
        "from prw_sdk import plugins; plugins.load = lambda: INSTALLED\n"
        "from prw_sdk.cli.app import app; app(sys.argv[1:])\n"
    )
    slow = config.read_text("utf-8").replace("per_second = 1000", "per_second = 20")
    config.write_text(slow, "utf-8")
    arguments = ["run", "-c", str(config), "--local", str(tmp_path / "spool"), "--json"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ.copy(),
        text=True,
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if '"settled"' in line)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    (row,) = json.loads(out)
    assert row["ended"] == "stopped; run again to resume"
    assert 0 < row["kept"] < 30
    config.write_text(slow.replace("per_second = 20", "per_second = 1000"), "utf-8")
    again = summary(invoke(*arguments))
    assert again["ended"] == "resumed and done"
    assert again["kept"] + row["kept"] == 30
