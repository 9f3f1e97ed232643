from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from prw_base.faults import InjectedFault, arm, disarm, fault, parse


@pytest.fixture(autouse=True)
def unarmed() -> Iterator[None]:
    """No point stays armed for another test."""
    disarm()
    yield
    disarm()


def run(spec: str, times: int) -> subprocess.CompletedProcess[str]:
    """A process of its own that passes one point ``times`` times and tells each."""
    code = (
        "from prw_base.faults import fault\n"
        f"for n in range({times}):\n    fault('room.point')\n    print(n, flush=True)"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PRW_FAULTS": spec},
        capture_output=True,
        check=False,
        text=True,
    )


def test_an_unarmed_point_does_nothing() -> None:
    """The points are part of the code path of every program."""
    fault("room.point")


def test_an_armed_point_kills_at_its_hit() -> None:
    """SIGKILL at the third hit: two passed, nothing was cleaned up."""
    done = run("other.point=raise,room.point=kill@3", times=5)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1"]


def test_a_raising_point_raises_once() -> None:
    """Only the named hit is struck, so that a retry may succeed."""
    arm("room.point=raise@2")
    fault("room.point")
    with pytest.raises(InjectedFault, match=r"room\.point"):
        fault("room.point")
    fault("room.point")


@pytest.mark.parametrize("spec", ["room.point", "room.point=stop", "a=kill@0", "a=raise@x"])
def test_a_spec_that_means_nothing_is_refused(spec: str) -> None:
    """A misspelt point would make a crash test pass without a crash."""
    with pytest.raises(ValueError, match="PRW_FAULTS"):
        parse(spec)
