"""A collector killed at any point of its run, and two at once: the end is that of one clean run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome
from tests.sdk.jobs import page
from tests.sdk.misbehaving import Site, answer

ROOT = Path(__file__).parents[2]
POINTS = (
    "collect.after_plan=kill@1",
    "collect.after_plan=kill@2",
    "collect.after_fetch=kill@1",
    "collect.after_fetch=kill@4",
    "collect.after_blob=kill@1",
    "collect.after_blob=kill@5",
    "collect.after_keep=kill@1",
    "collect.after_keep=kill@2",
    "collect.after_keep=kill@6",
    "collect.before_checkpoint=kill@1",
    "collect.before_checkpoint=kill@3",
    "collect.after_checkpoint=kill@1",
    "collect.before_finish=kill@1",
)


@pytest.fixture
def street(site: Site, shop: Callable[..., None]) -> Site:
    """Six pages of every kind, in three batches."""
    shop(
        a=page("A"),
        b=page("B"),
        gone=answer(status=404),
        c=page("C"),
        about=answer(b"no title"),
        d=page("D"),
    )
    return site


async def program(site: Site, folder: Path, faults: str = "") -> tuple[int, str]:
    """Run the collector as a process; its exit status and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.sdk.collect_program",
        str(site.port),
        str(folder),
        cwd=ROOT,
        env=os.environ | {"PRW_FAULTS": faults},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), err.decode()
    return process.returncode or 0, out.decode()


def state(folder: Path) -> dict[str, object]:
    """Everything that a clean run leaves behind, without its times."""
    spool = Spool.existing(folder)
    captures = list(spool.ledger.captures())
    found: dict[str, object] = {
        "captures": sorted(
            (one.key.native_id, tuple(part.sha256 for part in spool.capture(one).parts))
            for one in captures
        ),
        "outcomes": {outcome.value: n for (_, outcome), n in spool.ledger.outcomes().items()},
        "unfinished": spool.ledger.is_unfinished("ten_synth_a", "src_list"),
        "generation": spool.ledger.last_generation("ten_synth_a", "src_list"),
    }
    spool.close()
    return found


CLEAN = {Outcome.STORED.value: 4, Outcome.ABSENT.value: 1, Outcome.REJECTED.value: 1}


@pytest.mark.parametrize("point", POINTS)
async def test_a_killed_run_is_resumed_to_the_same_end(
    street: Site, tmp_path: Path, point: str
) -> None:
    """No item is lost, none is captured twice, and the run is the same generation."""
    status, _ = await program(street, tmp_path / "killed", point)
    assert status == -signal.SIGKILL
    status, _ = await program(street, tmp_path / "killed")
    await program(street, tmp_path / "clean")
    assert status == 0
    assert state(tmp_path / "killed") == state(tmp_path / "clean")
    assert state(tmp_path / "clean")["outcomes"] == CLEAN


async def test_a_run_killed_again_and_again_still_ends(street: Site, tmp_path: Path) -> None:
    """Each process gets one item further at least."""
    status = -1
    for _ in range(20):
        status, _ = await program(street, tmp_path / "killed", "collect.after_keep=kill@1")
        if status == 0:
            break
    assert status == 0
    await program(street, tmp_path / "clean")
    assert state(tmp_path / "killed") == state(tmp_path / "clean")


async def test_two_processes_over_one_spool_end_as_one_clean_run(
    street: Site, tmp_path: Path
) -> None:
    """Whichever comes first."""
    both = await asyncio.gather(*(program(street, tmp_path / "both") for _ in range(2)))
    await program(street, tmp_path / "clean")
    assert state(tmp_path / "both")["captures"] == state(tmp_path / "clean")["captures"]
    assert sum(json.loads(out)["kept"] for _, out in both) == 6


async def test_a_process_takes_over_from_one_that_is_killed_while_it_waits(
    street: Site, tmp_path: Path
) -> None:
    """The turn of a source ends with its holder."""
    results = await asyncio.gather(
        program(street, tmp_path / "both", "collect.after_keep=kill@3"),
        program(street, tmp_path / "both", "collect.after_keep=kill@3"),
    )
    assert -signal.SIGKILL in [status for status, _ in results]
    await program(street, tmp_path / "both")
    await program(street, tmp_path / "clean")
    assert state(tmp_path / "both")["captures"] == state(tmp_path / "clean")["captures"]
