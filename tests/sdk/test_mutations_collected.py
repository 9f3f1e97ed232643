"""Every installed adapter over a source that changes, through real runs: fetched, kept, read and held against the last.

`test_mutations` changes every name there is, one at a time, and asks what is made of it. Here a seeded choice of the
same changes goes over the wire, on every page of the source at once, and the run that meets it must report it.
"""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from prw_sdk.account.capture import stated_kinds
from prw_sdk.adapter import Kind
from prw_sdk.evidence import Capture
from prw_sdk.plugins import load
from prw_sdk.report import SourceReport
from prw_sdk.spool.folder import Spool
from prw_sdk.testing.fixtures import Fixture
from prw_sdk.testing.reading import read
from prw_sdk.testing.replay import Stage, staged
from prw_sdk.testing.subject import find
from tests.sdk.conforming import bench
from tests.sdk.mutating import Kinds, covers, mutations, touched

SEED = 11
OF_EACH = 2
"""Changes of each kind that are tried of each adapter; which ones, the seed says."""

ADAPTERS = sorted(load().adapters)


@dataclass
class Source:
    """An adapter's fixtures as a source, and the spool of its first run."""

    stage: Stage
    recorded: tuple[Fixture, ...]

    async def run(self, spool: str) -> SourceReport:
        """One run, into the spool of that name."""
        return await self.stage.run(self.stage.spool(spool), self.stage.job(batch=8))

    def serve(self, cases: Iterable[Fixture]) -> None:
        """What the source is from now on."""
        self.stage.cases = tuple(cases)
        for case in self.stage.cases:
            self.stage.serve(case)

    def changed(self, kind: str, name: str) -> tuple[Fixture, ...]:
        """The recorded pages with that change of that name, wherever it can be made."""
        found = []
        for case in self.recorded:
            made = (m.capture for m in mutations(case.capture) if (m.kind, m.name) == (kind, name))
            found.append(replace(case, capture=next(made, case.capture)))
        return tuple(found)

    def states(self, spool: str) -> Kinds:
        """Every name that the newest captures of records state, with the kinds of its values."""
        kinds: dict[str, set[Kind]] = defaultdict(set)
        for capture in newest(self.stage.spool(spool)):
            if not read(self.stage.bench.fresh(), capture)[0]:
                continue
            for name, found in stated_kinds(self.stage.bench.fresh(), capture).items():
                kinds[name] |= found
        return {name: frozenset(found) for name, found in kinds.items()}


def newest(spool: Spool) -> Iterator[Capture]:
    """The newest capture of each item."""
    return (
        spool.capture(one)
        for one in {kept.key.native_id: kept for kept in spool.ledger.captures()}.values()
    )


@contextmanager
def source(name: str, folder: Path) -> Iterator[Source]:
    """The source of an installed adapter."""
    adapter = load().adapters[name]
    with staged(bench(adapter, find(name, Path("/")).fixtures), folder) as stage:
        # what is no record counts for nothing, however it changes
        stage.cases = tuple(case for case in stage.cases if stage.bench.records(case))
        yield Source(stage, tuple(stage.cases))


def chosen(recorded: Iterable[Fixture]) -> list[tuple[str, str]]:
    """Kinds of changes, each with names that the seed says."""
    names: dict[str, set[str]] = defaultdict(set)
    for case in recorded:
        for one in mutations(case.capture):
            names[one.kind].add(one.name)
    choice = random.Random(SEED)
    return [
        (kind, name)
        for kind, found in sorted(names.items())
        for name in choice.sample(sorted(found), min(OF_EACH, len(found)))
    ]


@pytest.mark.parametrize("name", ADAPTERS)
async def test_the_run_that_meets_a_change_of_its_source_reports_it(
    name: str, tmp_path: Path
) -> None:
    """Rename, drop, add, re-type, empty: told by its name in the report of that very run."""
    missed: list[object] = []
    with source(name, tmp_path) as one:
        assert (await one.run("first")).changes == ()
        before = one.states("first")
        for number, (kind, changed) in enumerate(chosen(one.recorded)):
            spool = f"changed-{number}"
            shutil.copytree(tmp_path / "first", tmp_path / spool)
            one.serve(one.changed(kind, changed))
            found = (await one.run(spool)).changes
            names = touched(before, one.states(spool))
            lost = {name for name in names if not any(covers(change, name) for change in found)}
            missed += [(kind, changed, lost, [str(change) for change in found])] * bool(lost)
    assert missed == [], missed


@pytest.mark.parametrize("name", ADAPTERS)
async def test_fifty_runs_over_an_unchanged_source_raise_no_alarm(
    name: str, tmp_path: Path
) -> None:
    """Fetched again and read again each time, in any order; the first one stays, since its settings are the run's."""
    choice = random.Random(SEED)
    with source(name, tmp_path) as one:
        for _ in range(50):
            first, *others = one.recorded
            one.stage.cases = (first, *choice.sample(others, len(others)))
            report = await one.run("spool")
            assert (report.changes, report.breaches, report.failure) == ((), (), None)
