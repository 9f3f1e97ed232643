"""Workers that are killed: what had committed stands, and the next one goes on (if_resolution_job)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from prw_resolver.jobs import service as jobs
from prw_resolver.jobs.model import Stage
from tests.resolver.walking import (
    TENANT,
    TWO,
    WALKED_ONCE,
    Rows,
    Shop,
    counts,
    page,
    queue_rows,
    shop,
    working,
)
from tests.support.waiting import until


@pytest.fixture
async def rooms(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Shop]:
    """Rooms over a database of the test's own."""
    async with shop(resolver_database["resolver_app"], tmp_path) as open_shop:
        yield open_shop


POINTS = {
    "worker.after_extract": {Stage.EXTRACT},
    "worker.after_normalise": {Stage.EXTRACT, Stage.NORMALISE},
    "worker.before_identify": {Stage.EXTRACT, Stage.NORMALISE},
    "worker.after_identify": set(Stage),
}


@pytest.mark.parametrize("point", POINTS)
async def test_a_worker_killed_at_any_point_is_gone_on_from_where_it_was(
    rooms: Shop, superuser: Rows, tmp_path: Path, point: str
) -> None:
    """Kill -9 between the stages: what had committed stands, what had not is done once by the next worker."""
    capture_id = await rooms.submit(TWO)
    command = (sys.executable, "-m", "tests.resolver.worker_program", rooms.dsn, str(tmp_path))
    program = await asyncio.create_subprocess_exec(
        *command, env=os.environ | {"PRW_FAULTS": f"{point}=kill"}
    )
    assert await asyncio.wait_for(program.wait(), timeout=60) == -signal.SIGKILL
    async with rooms.db.transaction(TENANT) as conn:
        states = await jobs.stage_states(conn, [capture_id])
    assert states[capture_id].done == POINTS[point]
    async with working(rooms):
        await until(lambda: rooms.done(capture_id))
        await until(lambda: queue_rows(superuser) == [])
    assert counts(superuser) == WALKED_ONCE
    expected = 0 if point == "worker.after_identify" else 2
    assert len(rooms.identified.records) == expected


async def test_an_orphaned_reading_process_ends_with_its_worker(
    rooms: Shop, tmp_path: Path
) -> None:
    """A worker that is killed leaves no process behind, not even one that reads."""
    await rooms.submit(page(do="hang"))
    command = (sys.executable, "-m", "tests.resolver.worker_program", rooms.dsn, str(tmp_path))
    program = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    children = await until(lambda: _readers(program.pid), timedelta(seconds=60))
    program.kill()
    await program.wait()
    await until(lambda: not any(Path(f"/proc/{child}/cmdline").exists() for child in children))


def _readers(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii")
    return [int(child) for child in found.split() if _reads(int(child))]


def _reads(child: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
