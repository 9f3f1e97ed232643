"""The real runner over a source that changes: the run that meets a change reports it, and no other does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prw_sdk.account import Change, ChangeKind
from prw_sdk.spool.folder import Spool
from prw_sdk.testing.replay import Stage, staged
from tests.sdk.conforming import bench
from tests.sdk.mutating import mutations
from tests.sdk.small_shop import Small, article, page, write_fixtures

PAGES = {f"p{n}": page(article(f"P-{n}", "Part", f"{n}.90", color="red")) for n in range(1, 5)}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A shop of four articles on a local server."""
    write_fixtures(tmp_path / "fixtures", PAGES)
    with staged(bench(Small, tmp_path / "fixtures"), tmp_path) as one:
        yield one


async def told(stage: Stage, spool: Spool) -> tuple[Change, ...]:
    """What one run over the whole shop reports."""
    report = await stage.run(spool, stage.job(batch=8))
    assert report.failure is None
    return report.changes


def change(stage: Stage, kind: str, name: str) -> None:
    """Change that name so on every page of the shop."""
    for case in stage.cases:
        (one,) = (m for m in mutations(case.capture) if (m.kind, m.name) == (kind, name))
        stage.serve(replace(case, capture=one.capture))


@pytest.mark.parametrize(
    ("kind", "name", "reported"),
    [
        ("rename", "color", (ChangeKind.RENAMED, "color", "colorRenamed")),
        ("rename", "price", (ChangeKind.RENAMED, "offers.price", "offers.priceRenamed")),
        ("drop", "color", (ChangeKind.DROPPED, "color", None)),
        ("drop", "available", (ChangeKind.DROPPED, "stock.available", None)),
        ("add", "color", (ChangeKind.UNKNOWN, "zz_added", None)),
        ("retype", "price", (ChangeKind.RETYPED, "offers.price", None)),
    ],
)
async def test_a_run_reports_what_the_source_changed_since_the_last_one(
    stage: Stage, kind: str, name: str, reported: tuple[ChangeKind, str, str | None]
) -> None:
    """In the very run that fetches the changed pages; the next one has met it already."""
    spool = stage.spool()
    assert await told(stage, spool) == ()
    change(stage, kind, name)
    found = [(one.kind, one.name, one.other) for one in await told(stage, spool)]
    assert reported in found
    assert await told(stage, spool) == ()


async def test_fifty_runs_over_an_unchanged_source_raise_no_alarm(stage: Stage) -> None:
    """Nothing is reported that did not change."""
    spool = stage.spool()
    for _ in range(50):
        assert await told(stage, spool) == ()
