"""``prw demo`` as a user runs it: processes, ports and a state folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.waiting import until_sync

ROOT = Path(__file__).resolve().parent.parent.parent
PRW = Path(sys.executable).with_name("prw")
SECONDS = 240
WAIT = timedelta(seconds=SECONDS)
FIGURES = (
    *("fetched", "kept", "submitted", "accepted", "in_review", "public_items", "positions"),
    *("gaps", "duplicates", "merged_near_misses", "split_same", "untraceable_facts"),
    *("missed_accepts", "pairs_tested", "addresses"),
)
FAULTS = FIGURES[7:13]

pytestmark = pytest.mark.timeout(2 * SECONDS)


def once(state: Path) -> dict[str, Any]:
    """One run that ends by itself; its last line, as an object."""
    command = (str(PRW), "demo", "--once", "--json", "--state", str(state))
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@contextmanager
def serving(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A demo that serves; killed at the end where it still runs. What it says goes to two files beside the state."""
    out, err = state.with_suffix(".out"), state.with_suffix(".err")
    with open(out, "wb") as told, open(err, "wb") as errors:
        command = (str(PRW), "demo", "--state", str(state))
        demo = subprocess.Popen(command, stdout=told, stderr=errors)
    try:
        until_sync(lambda: "Ctrl-C" in out.read_text() or demo.poll() is not None, WAIT)
        assert demo.poll() is None, err.read_text()
        yield demo
    finally:
        demo.kill()
        demo.wait()


def run(script: str) -> str:
    """What a script prints, with the working folder that the docs speak of."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return done.stdout


def readme_block() -> str:
    """The README's commands for a running demo."""
    return (ROOT / "README.md").read_text("utf-8").split("```sh demo\n")[1].split("```")[0]


def processes_of(state: Path) -> list[str]:
    """Command lines of processes that name the state folder, or that work in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            where = str((process / "cwd").readlink())
        except OSError:
            continue
        if str(state) in line or where.startswith(str(state)):
            found.append(line)
    return found


def test_the_whole_walk_from_nothing_and_again(tmp_path: Path) -> None:
    """Everything ends at rest with the check's figures at 0, and a second start adds nothing and loses nothing."""
    state = tmp_path / "state"
    first = once(state)
    assert tuple(first) == FIGURES
    assert {name: first[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0)
    assert first["kept"] == first["submitted"] > 60
    assert first["accepted"] > first["public_items"] > 20
    assert first["in_review"] > 0
    assert first["pairs_tested"]["same"] > 50
    assert first["pairs_tested"]["different"] > 150
    assert processes_of(state) == []
    again = once(state)
    changing = ("fetched", "addresses")
    assert {k: v for k, v in again.items() if k not in changing} == {
        k: v for k, v in first.items() if k not in changing
    }


def test_it_serves_and_the_next_command_works_as_printed(tmp_path: Path) -> None:
    """The pages are there, the review queue opens with the printed command, and Ctrl-C leaves nothing behind."""
    state = tmp_path / "state"
    with serving(state) as demo:
        said = state.with_suffix(".out").read_text()
        page = next(word for word in said.split() if word.endswith("/v1/items"))
        assert httpx.get(page, trust_env=False).json()["items"]
        assert httpx.get(page.removesuffix("v1/items"), trust_env=False).is_success
        command = next(line for line in said.splitlines() if "review list" in line)
        assert json.loads(run(f"{command} --json"))
        given = next(line for line in said.splitlines() if line.strip().startswith("export "))
        assert '"items"' in run(f"{given}\n{readme_block()}")
        token = state / "tokens" / "operator.jwt"
        assert token.stat().st_mode & 0o077 == 0
        demo.send_signal(signal.SIGINT)
        assert demo.wait(SECONDS) == 0
    assert processes_of(state) == []


def test_it_ends_with_the_child_that_dies_and_without_a_trace_when_killed(tmp_path: Path) -> None:
    """A dead child is named with the end of its log; after a kill -9 of the demo the next begins on clean ground."""
    state = tmp_path / "state"
    with serving(state) as demo:
        resolver = json.loads((state / "run" / "resolver.json").read_text())["pid"]
        os.kill(resolver, signal.SIGKILL)
        assert demo.wait(SECONDS) == 1
    said = state.with_suffix(".err").read_text()
    assert "resolver was ended by SIGKILL" in said
    assert "resolver serves gRPC on" in said
    assert processes_of(state) == []
    with serving(state) as demo:
        demo.kill()
        demo.wait()
        assert once(state)["gaps"] == 0
    assert processes_of(state) == []
