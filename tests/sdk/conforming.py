"""Running the checks of the conformance suite in this process, one after another, on any adapter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from prw_sdk.adapter import Adapter, declaration_faults
from prw_sdk.testing import fixtures
from prw_sdk.testing.bench import Bench
from prw_sdk.testing.plans import load_plan
from prw_sdk.testing.replay import staged
from prw_sdk.testing.subject import Subject
from prw_sdk.testing.suite import (
    check_declarations,
    check_fixtures,
    check_hostile,
    check_plan,
    check_reading,
    check_replay,
)

Check = Callable[..., None]
MODULES = (
    check_declarations,
    check_fixtures,
    check_hostile,
    check_plan,
    check_reading,
    check_replay,
)


def _checks(module: ModuleType) -> Iterator[tuple[str, Check]]:
    for name, value in vars(module).items():
        if name.startswith("test_"):
            yield name.removeprefix("test_"), value


CHECKS = {name: check for module in MODULES for name, check in _checks(module)}
SLOW = frozenset(
    {name for name, _ in _checks(check_replay)}
    | {"reading_in_another_process_gives_the_same", "the_first_read_of_a_process_does_no_io"}
    | {"pages_made_to_be_slow_are_survived"}
)


def bench(adapter: type[Adapter], folder: Path) -> Bench:
    """The bench of an adapter with its fixtures."""
    return Bench(Subject(adapter, declaration_faults(adapter), folder))


def look_at(adapter: type[Adapter], folder: Path) -> None:
    """Note what the adapter reads as what was looked at."""
    for case in fixtures.load(folder, adapter):
        fixtures.write_expected(case, bench(adapter, folder).outcome(case.capture))


def failing(one: Bench, names: frozenset[str], tmp_path: Path) -> dict[str, str]:
    """Which of these checks fail, and what each says first."""
    failed: dict[str, str] = {}
    for name in sorted(names):
        for number, arguments in enumerate(_calls(CHECKS[name], one)):
            try:
                _run(CHECKS[name], arguments, one, tmp_path / f"{name[:40]}{number}")
            except pytest.fail.Exception as said:
                failed.setdefault(name, str(said))
            except pytest.skip.Exception:
                continue
            except Exception as error:  # noqa: BLE001  # a check that cannot be made has failed as well
                failed.setdefault(name, repr(error))
    return failed


def _calls(check: Check, one: Bench) -> list[dict[str, Any]]:
    wanted = inspect.signature(check).parameters
    if "case" in wanted:
        return [{"case": case} for case in one.cases]
    if "point" in wanted:
        return [{"point": "collect.after_blob"}]
    return [{}]


def _run(check: Check, arguments: dict[str, Any], one: Bench, folder: Path) -> None:
    wanted = inspect.signature(check).parameters
    with ExitStack() as held:
        if "bench" in wanted:
            arguments["bench"] = one
        if "planned" in wanted:
            arguments["planned"] = load_plan(one.subject.fixtures, one.fresh())
        if "stage" in wanted:
            folder.mkdir(parents=True)
            arguments["stage"] = held.enter_context(staged(one, folder))
        if "monkeypatch" in wanted:
            arguments["monkeypatch"] = held.enter_context(pytest.MonkeyPatch.context())
        check(**arguments)
