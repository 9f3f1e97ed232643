"""What `prw collect` tells scripts and operators: progress, summary, damage, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sdk.commanding import invoke, summary
from tests.sdk.jobs import page
from tests.sdk.misbehaving import Site, answer
from tests.support.waiting import until_sync

Shop = Callable[..., None]
KEYS = {
    "waiting": set(),
    "started": set(),
    "planned": {"count"},
    "settled": {"item", "outcome"},
    "skipped": {"item", "outcome"},
    "checkpoint": set(),
    "changed": {"code", "error"},
    "breached": {"code", "error"},
    "failed": {"code", "error"},
    "ended": set(),
    "submitted": {"item"},
    "refused": {"item", "code", "error"},
}
"""What each line of progress says beside its event and source; ``code``, ``error`` and ``kept`` where they apply."""


def test_a_line_of_progress_says_what_it_always_said(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """Scripts read them."""
    shop(a=page("A"), b=answer(status=500), about=answer(b"no title"), gone=answer(status=404))
    result = invoke("run", "--config", config, "--local", tmp_path / "spool", "--json")
    seen: set[str] = set()
    for line in map(json.loads, result.stderr.splitlines()):
        if "level" in line:
            # a log line, which tells a person more
            continue
        seen.add(line["event"])
        needed = {"event", "source"} | KEYS[line["event"]]
        assert needed <= line.keys() <= needed | {"code", "error", "kept"}
    assert seen == {"started", "planned", "settled", "checkpoint", "ended"}


def test_the_summary_counts_what_progress_told(shop: Shop, config: Path, tmp_path: Path) -> None:
    """`planned` and `kept` are the same figures; `fetched` counts answers, the index among them."""
    shop(a=page("A"), b=page("B"), gone=answer(status=404))
    result = invoke("run", "--config", config, "--local", tmp_path / "spool", "--json")
    events, row = list(map(json.loads, result.stderr.splitlines())), summary(result)
    assert row["planned"] == sum(event.get("count", 0) for event in events) == 3
    assert row["kept"] == sum(event.get("kept", False) for event in events) == 3
    assert row["fetched"] == 4


def test_status_finds_bytes_that_are_no_longer_there(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """Missing or cut short at once, changed ones where every byte is read; `retry` and `run` mend all."""
    shop(a=page("A"), b=page("B"), c=page("C"))
    run, folder = ("run", "-c", config, "--local", tmp_path / "spool"), tmp_path / "spool"
    invoke(*run)
    assert invoke("status", folder, "--verify").exit_code == 0
    first, second, third = sorted(path for path in folder.glob("blobs/*/*"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    third.write_bytes(b"?" * third.stat().st_size)
    for arguments, damaged in (((), 2), (("--verify",), 3)):
        result = invoke("status", folder, "--json", *arguments)
        (row,) = json.loads(result.stdout)
        assert (result.exit_code, row["damaged"]) == (1, damaged)
    assert "Damaged" in invoke("status", folder).stdout
    assert invoke(*run).exit_code == 0
    assert invoke("status", folder, "--verify").exit_code == 0


def test_receipts_are_asked_of_a_resolver_that_the_settings_name(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """Else that is wrong usage, told by field."""
    shop(a=page("A"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    result = invoke("status", tmp_path / "spool", "--receipts", "-c", config)
    assert (result.exit_code, "resolver: give its address" in result.stderr) == (2, True)


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xff\xfe", b"two\nlines"])
def test_a_token_file_that_holds_no_token_is_told(
    shop: Shop, config: Path, tmp_path: Path, content: bytes
) -> None:
    """By field and file, before anything is sent."""
    shop(a=page("A"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    (tmp_path / "token").write_bytes(content)
    section = '[resolver]\naddress="127.0.0.1:1"\ntoken_file="token"\n'
    config.write_text(config.read_text("utf-8") + section, "utf-8")
    result = invoke("push", tmp_path / "spool", "-c", config)
    assert (result.exit_code, "resolver.token_file" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", ["run", "push", "records", "status", "retry", "example"])
def test_each_command_says_what_it_does(command: str) -> None:
    """With a line for every option."""
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    assert len(result.stdout.splitlines()) > 5


def test_a_second_ctrl_c_ends_a_run_at_once_and_it_can_still_be_resumed(
    site: Site, shop: Shop, tmp_path: Path, config: Path
) -> None:
    """Also where what is in flight does not end."""
    shop(a=page("A"), b=page("B"))
    site.serve("/p/b", answer(status=503, headers={"Retry-After": "6"}), page("B"))
    arguments = ["run", "-c", str(config), "--local", str(tmp_path / "spool"), "--json"]
    program = (
        "import sys; from tests.sdk.commanding import INSTALLED\n"
        "from prw_sdk import plugins; plugins.load = lambda: INSTALLED\n"
        "from prw_base.cli import main; sys.argv[1:1] = ['collect']; main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ.copy(),
        text=True,
    ) as process:
        until_sync(lambda: site.asked["/p/b"] == 1)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode == 130
    again = summary(invoke(*arguments))
    assert again["ended"] == "resumed and done"
    assert (again["stored"], site.asked["/p/b"]) == (2, 2)
