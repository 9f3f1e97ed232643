"""Every installed adapter: a change of its source is reported in the run that meets it, and nothing else is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from prw_sdk.account import ChangeKind, Profile, Tally, account, changes
from prw_sdk.account.capture import stated_kinds
from prw_sdk.adapter import Adapter
from prw_sdk.evidence import Capture
from prw_sdk.plugins import load
from prw_sdk.testing import fixtures
from prw_sdk.testing.reading import read
from prw_sdk.testing.subject import find
from tests.sdk.mutating import covers, mutations, touched
from tests.sdk.small_shop import Small, write_fixtures

ADAPTERS = sorted(
    name for name in load().adapters if any(find(name, Path("/")).fixtures.glob("*/capture.json"))
)
MOST = 60
"""Changes that are tried of each fixture; which ones, the seed says."""

SEED = 11


def recorded(adapter: Adapter) -> list[Capture]:
    """The captures of an adapter's fixtures that hold records."""
    folder = find(adapter.name, Path("/")).fixtures
    captures = [one.capture for one in fixtures.load(folder, adapter)]
    return [capture for capture in captures if read(adapter, capture)[0]]


def profile(adapter: Adapter, captures: Iterable[Capture]) -> Profile:
    """The profile of a run over these captures."""
    tally = Tally()
    for capture in captures:
        records, _ = read(adapter, capture)
        tally.add(account(adapter, capture, records), records)
    return tally.profile()


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_change_of_a_recorded_source_is_reported_in_the_same_run(name: str) -> None:
    """Rename, drop, add, re-type, empty: seeded, one at a time, each told by its name."""
    adapter = load().adapters[name]()
    missed: list[object] = []
    shown: Counter[str] = Counter()
    for capture in recorded(adapter):
        before, tried = profile(adapter, [capture]), list(mutations(capture))
        for one in random.Random(SEED).sample(tried, min(MOST, len(tried))):
            names = touched(stated_kinds(adapter, capture), stated_kinds(adapter, one.capture))
            shown[one.kind] += bool(names)
            found = changes(before, profile(adapter, [one.capture]))
            lost = {name for name in names if not any(covers(change, name) for change in found)}
            missed += [(one.kind, one.name, lost, [str(change) for change in found])] * bool(lost)
    assert missed == []
    assert min(shown[kind] for kind in ("rename", "drop", "add")) > 0, f"too little: {shown}"


@pytest.mark.parametrize("name", ADAPTERS)
def test_fifty_unchanged_reads_of_a_recorded_source_raise_no_alarm(name: str) -> None:
    """In any order, each run compared with the last."""
    adapter, choice = load().adapters[name](), random.Random(SEED)
    captures = recorded(adapter)
    last = profile(adapter, captures)
    assert last.unknown == ()
    for _ in range(50):
        choice.shuffle(captures)
        now = profile(adapter, captures)
        assert changes(last, now) == ()
        last = now


def test_every_installed_adapter_has_fixtures() -> None:
    """One without any would pass the tests above unseen."""
    assert sorted(load().adapters) == ADAPTERS


def test_each_kind_of_change_is_told_as_what_it_is(tmp_path: Path) -> None:
    """The changes made here are the changes reported, on the small shop's own pages."""
    write_fixtures(tmp_path)
    adapter = Small()
    capture = fixtures.read(tmp_path / "wheel", adapter).capture
    before = profile(adapter, [capture])
    told: dict[str, set[ChangeKind]] = {}
    for one in mutations(capture):
        if one.name in ("sku", "available"):
            found = changes(before, profile(adapter, [one.capture]))
            told.setdefault(one.kind, set()).update(change.kind for change in found)
    assert told == {
        "rename": {ChangeKind.RENAMED},
        "drop": {ChangeKind.DROPPED},
        "add": {ChangeKind.UNKNOWN},
        "retype": {ChangeKind.RETYPED},
    }
