"""kill -9 of a collector that pushes to the real resolver, at each named point: the next push ends it, once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.pushing import ITEMS, Pushing, pushing

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("PRW_SEED", "20261201"))
SEEDS = 3
POINTS = {
    "uplink.after_declare": ITEMS,
    "uplink.mid_artifact": ITEMS,
    "uplink.after_put": ITEMS,
    "uplink.after_submit": ITEMS,
    "uplink.after_mark": ITEMS,
    "uplink.after_advance": 1,
}
"""How often a push passes each point."""


@contextmanager
def lives(one: Pushing) -> Iterator[subprocess.Popen[str]]:
    """A warm process that pushes are forked from."""
    command = [sys.executable, "-m", "tests.faults.push_lives", one.address, one.token]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def killed(process: subprocess.Popen[str], folder: Path, armed: str) -> None:
    """A push that is killed there."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{folder} {armed}\n")
    process.stdin.flush()
    assert int(process.stdout.readline()) == -signal.SIGKILL, armed


@pytest.mark.timeout(120)
async def test_a_push_that_is_killed_anywhere_is_ended_by_the_next_one(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """Replay rules 1, 2 and 9: every capture once, every artifact stored, nothing that was stored sent again."""
    choose = random.Random(SEED)
    async with pushing(resolver_database, tmp_path) as one:
        with lives(one) as process:
            for point, most in POINTS.items():
                for _ in range(SEEDS):
                    folder = await one.fill()
                    armed = f"{point}=kill@{choose.randint(1, most)}"
                    killed(process, folder, armed)
                    await one.check_resumed(folder)
