"""Every plugin through the real collector, over a shop on loopback: once, again, and killed on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prw_sdk.collect import collect
from prw_sdk.locate import leads_back
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome
from prw_sdk.testing.reading import claims
from prw_sdk.testing.server import Site, serving
from tests.plugins.shops import SHOPS, job
from tests.sdk.jobs import QUICK

ROOT = Path(__file__).parents[2]
THERE = 4
"""Targets of each shop that are there; one more is gone."""


@pytest.fixture(params=sorted(SHOPS))
def plugin(request: pytest.FixtureRequest) -> str:
    """The name of a plugin."""
    return str(request.param)


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on loopback."""
    with serving() as running:
        yield running


async def outcomes(name: str, site: Site, spool: Spool) -> dict[Outcome, int]:
    """Run the plugin over its shop; how its targets ended."""
    (report,) = await collect([job(name, site)], spool, QUICK)
    assert report.failure is None
    assert report.unreadable == 0
    return {outcome: n for outcome, n in report.outcomes.items() if n}


async def test_a_second_run_finds_everything_unchanged(
    plugin: str, site: Site, tmp_path: Path
) -> None:
    """What is there is stored once, what is gone is an absence, and nothing is stored again."""
    spool = Spool(tmp_path / "spool")
    first = await outcomes(plugin, site, spool)
    second = await outcomes(plugin, site, spool)
    kept = [spool.capture(one) for one in spool.ledger.captures()]
    spool.close()
    assert first == {Outcome.STORED: THERE, Outcome.ABSENT: 1}
    assert second == {Outcome.UNCHANGED: THERE, Outcome.ABSENT: 1}
    assert len(kept) == THERE + 1


async def test_what_is_kept_is_read_with_locators_that_lead_back(
    plugin: str, site: Site, tmp_path: Path
) -> None:
    """From the spooled bytes, with the config that is pinned in each capture."""
    spool = Spool(tmp_path / "spool")
    await outcomes(plugin, site, spool)
    kept = [spool.capture(one) for one in spool.ledger.captures()]
    spool.close()
    adapter = SHOPS[plugin][0]()
    for capture in (one for one in kept if one.presence == "present"):
        records = list(adapter.read(capture))
        assert records
        assert all(leads_back(claim, capture) for one in records for claim in claims(one))


def program(name: str, site: Site, folder: Path, faults: str = "") -> int:
    """Run the collector as a process; its exit status."""
    command = [sys.executable, "-m", "tests.plugins.collect_program", name, str(site.port)]
    done = subprocess.run(
        [*command, str(folder)],
        cwd=ROOT,
        env=os.environ | {"PRW_FAULTS": faults},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def state(folder: Path) -> object:
    """Everything that a clean run leaves behind, without its times."""
    spool = Spool.existing(folder)
    kept = sorted(
        (one.key.native_id, tuple(part.sha256 for part in spool.capture(one).parts))
        for one in spool.ledger.captures()
    )
    found = (
        kept,
        {outcome: n for (_, outcome), n in spool.ledger.outcomes().items()},
        spool.ledger.is_unfinished("ten_synth_a", "src_shop"),
    )
    spool.close()
    return found


@pytest.mark.parametrize("point", ["collect.after_keep=kill@3", "collect.after_checkpoint=kill@1"])
def test_a_killed_run_is_resumed_to_the_same_end(
    plugin: str, site: Site, tmp_path: Path, point: str
) -> None:
    """No product is lost and none is captured twice, wherever the plan was cut off."""
    job(plugin, site)
    assert program(plugin, site, tmp_path / "killed", point) == -signal.SIGKILL
    assert program(plugin, site, tmp_path / "killed") == 0
    assert program(plugin, site, tmp_path / "clean") == 0
    assert state(tmp_path / "killed") == state(tmp_path / "clean")
