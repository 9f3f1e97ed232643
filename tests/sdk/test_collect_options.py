"""Options with values that make no sense are refused by name; none ends in a traceback."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from prw_sdk.cli import adapter
from tests.sdk.commanding import invoke
from tests.sdk.jobs import page

Shop = Callable[..., None]
NO_TEXT = os.fsdecode(b"a\xffb")
HUGE = "9" * 400


@pytest.fixture
def folder(shop: Shop, config: Path, tmp_path: Path) -> Path:
    """A spool with one capture."""
    shop(a=page("A"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    return tmp_path / "spool"


def cursor(text: str) -> str:
    """What a page would give as its cursor, had it these words."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("--code", ("items", "DIR", "--code", NO_TEXT)),
        ("--source", ("items", "DIR", "--source", NO_TEXT)),
        ("--after", ("items", "DIR", "--after", NO_TEXT)),
        ("--after", ("items", "DIR", "--after", cursor('["a", "b", "\\ud800"]'))),
        ("--after", ("items", "DIR", "--after", cursor("[" * 50_000))),
        ("--item", ("retry", "DIR", "--item", NO_TEXT)),
        ("--source", ("retry", "DIR", "--source", NO_TEXT)),
        ("--host", ("retry", "--host", NO_TEXT)),
        ("--host", ("retry", "--host", " ")),
        ("--host", ("retry", "DIR", "--host", "")),
        ("--source", ("records", "DIR", "--source", NO_TEXT)),
        ("--source", ("export", "DIR", "--warc", "a.warc", "--source", NO_TEXT)),
        ("--every", ("run", "-c", "CONFIG", "--every", NO_TEXT)),
        ("SOURCE", ("run", "-c", "CONFIG", "--local", "DIR", NO_TEXT)),
        ("--stale", ("doctor", "DIR", "--stale", HUGE)),
        ("--stale", ("doctor", "DIR", "--stale", "36501")),
        ("--limit", ("items", "DIR", "--limit", HUGE)),
        ("--every", ("run", "-c", "CONFIG", "--every", f"{HUGE}d", "--local", "DIR")),
        ("--every", ("run", "-c", "CONFIG", "--every", "999999d", "--local", "DIR")),
    ],
    ids=lambda value: " ".join(value[:3])[:40] if isinstance(value, tuple) else value,
)
def test_a_value_that_makes_no_sense_is_refused_by_its_name(
    folder: Path, config: Path, named: str, arguments: tuple[str, ...]
) -> None:
    """Status 2 and a line that names the option: bytes that are no UTF-8, numbers that nothing can hold."""
    paths = {"DIR": folder, "CONFIG": config}
    result = invoke(*(paths.get(one, one) for one in arguments))
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2, result.output
    assert named in result.stderr


@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("--source", ("diff", "DIR", "--source", NO_TEXT)),
        ("--source", ("coverage", "DIR", "--source", NO_TEXT)),
        ("--processes", ("diff", "DIR", "--processes", HUGE)),
    ],
)
def test_commands_of_authors_refuse_them_as_well(
    folder: Path, named: str, arguments: tuple[str, ...]
) -> None:
    """With the same words."""
    values = [str(folder) if one == "DIR" else one for one in arguments]
    result = CliRunner().invoke(adapter.app, values)
    assert isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, named in result.stderr) == (2, True), result.output


@pytest.mark.parametrize(
    "line",
    [
        "resolver.retry.base = 1e300",
        "resolver.retry.cap = 1e300",
        "fetch.backoff = 1e300",
        "fetch.backoff_cap = 1e300",
        "fetch.patience = 1e300",
        "rate.longest_pause = 1e300",
    ],
)
def test_durations_that_nothing_can_hold_are_refused_by_field(config: Path, line: str) -> None:
    """Before anything is fetched."""
    text = config.read_text("utf-8")
    for table in ("fetch", "rate"):
        text = "\n".join(
            one for one in text.splitlines() if not one.strip().startswith(f"{table} =")
        )
    config.write_text(f'{line}\nresolver.address = "127.0.0.1:1"\n{text}', "utf-8")
    result = invoke("run", "-c", config)
    assert isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, line.split(" ", maxsplit=1)[0] in result.stderr) == (2, True), (
        result.output
    )


def test_a_folder_whose_name_is_no_text_is_a_folder_like_any_other(folder: Path) -> None:
    """Names of files are bytes; what cannot be printed is shown otherwise."""
    odd = folder.rename(folder.with_name(NO_TEXT))
    for words in (["retry"], ["retry", "--json"], ["status"], ["doctor", "--json"], ["items"]):
        done = subprocess.run(
            [sys.executable, "-c", "from prw_base.cli import main; main()", "collect", *words, odd],
            env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(invoke("items", odd, "--json").stdout)["items"]
