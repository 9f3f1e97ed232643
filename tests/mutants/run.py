"""`make mutants`: breaks one rule at a time in a copy of the tree, and requires that its tests go red (T15).

Each `*.patch` beside this file is one mutant. Its head says the rule that it breaks and the tests that must kill it:

    rule: lock released before COMMIT
    killed-by: tests/resolver/test_stream.py::test_writers_of_several_processes_take_turns

A mutant is killed where every test of its head fails by an assertion or an exception of its own; an error in a
fixture, a collection that fails or a test that is not there kills nothing, since then the mutant never ran. The same
tests are run unbroken before, in a copy too, and have to pass there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATCHES = Path(__file__).resolve().parent
PACKAGES = ("prw.errors", "prw_base", "prw_resolver", "prw_product")
"""What must come from the copy, or the mutant would not be what runs."""

_PATIENCE = 600
"""Seconds for the tests of one mutant; each test of them ends far earlier by its own timeout."""


class NotRun(Exception):
    """A mutant could not be tried: says nothing about its tests."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken rule, and the tests that hold it."""

    patch: Path
    rule: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return self.patch.stem


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a mutant; `lived` are those of its tests that stayed green."""

    mutant: Mutant
    seconds: float
    lived: tuple[str, ...]
    trouble: str = ""

    @property
    def killed(self) -> bool:
        """Whether every test that should notice did."""
        return not self.lived and not self.trouble


def read(patch: Path) -> Mutant:
    """The mutant of a patch. Raises NotRun where its head says no rule or no test."""
    head = patch.read_text("utf-8").partition("\ndiff --git ")[0]
    lines = [line.partition(": ") for line in head.splitlines()]
    rules = [said for name, _, said in lines if name == "rule"]
    tests = tuple(said for name, _, said in lines if name == "killed-by")
    if len(rules) != 1 or not tests:
        raise NotRun(f"{patch.name}: its head must say one 'rule: ' and who it is 'killed-by: '")
    return Mutant(patch, rules[0], tests)


def read_all() -> list[Mutant]:
    """Every mutant, by name."""
    return [read(patch) for patch in sorted(PATCHES.glob("*.patch"))]


def apply(mutant: Mutant, tree: Path, *, only_check: bool = False) -> None:
    """Apply a mutant's patch to a tree. Raises NotRun where it no longer fits."""
    check = ["--check"] if only_check else []
    command = ["git", "apply", "--whitespace=nowarn", *check, str(mutant.patch)]
    # A tree within somebody's repository would be taken for a part of that one.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(
        command, check=False, cwd=tree, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise NotRun(f"{mutant.patch.name} does not apply: {done.stderr.strip()}")


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the tree as it stands, changes that are not committed included."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="prw-mutant-") as folder:
        tree = Path(folder).resolve()
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        yield tree


def environment(tree: Path) -> dict[str, str]:
    """An environment in which the packages of a tree come before the installed ones."""
    sources = [*tree.glob("*/src"), *tree.glob("plugins/*/src")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, sorted(sources))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def prove(tree: Path) -> None:
    """Raise NotRun unless the packages that run are those of the tree."""
    code = (
        f"import importlib\nfor name in {PACKAGES}: print(importlib.import_module(name).__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=tree,
        env=environment(tree),
        capture_output=True,
        text=True,
    )
    found = done.stdout.split()
    if done.returncode or not all(Path(path).is_relative_to(tree) for path in found):
        raise NotRun(f"what runs is not the copy: {found} {done.stderr}")


def red(tree: Path, tests: Sequence[str]) -> tuple[set[str], set[str], str]:
    """Run tests in a tree; those that failed, those that passed, and the end of what was said."""
    report = tree / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]
    bounds = ["--timeout=60", "-m", "soak or not soak", f"--junitxml={report}"]
    done = subprocess.run(
        [*command, *bounds, *tests],
        check=False,
        cwd=tree,
        env=environment(tree),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE,
    )
    if not report.exists():
        raise NotRun(f"the tests did not run:\n{done.stdout[-2000:]}")
    cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314  # pytest wrote it just now
    failed = [case for case in cases if case.find("failure") is not None]
    passed = [case for case in cases if len(case.findall("*")) == 0]
    return _named(failed, tests), _named(passed, tests), done.stdout[-2000:]


def _named(cases: Iterable[ET.Element], tests: Sequence[str]) -> set[str]:
    """Which of the tests are among the cases: one case of a test with parameters is enough."""
    ran = {(case.get("classname", ""), case.get("name", "")) for case in cases}
    return {test for test in tests if any(_is(test, *one) for one in ran)}


def _is(test: str, module: str, name: str) -> bool:
    path, _, wanted = test.partition("::")
    return path.removesuffix(".py").replace("/", ".") == module and (
        name == wanted or name.startswith(f"{wanted}[")
    )


def check_unbroken(mutants: Sequence[Mutant]) -> float:
    """Run every test that is named in an unbroken copy; the seconds. Raises NotRun where one does not pass."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    began = time.monotonic()
    with copied() as tree:
        prove(tree)
        failed, passed, said = red(tree, tests)
    if failed or set(tests) - passed:
        raise NotRun(f"not green without any mutant: {failed | (set(tests) - passed)}\n{said}")
    return time.monotonic() - began


def attempt(mutant: Mutant) -> Trial:
    """Break a copy, and run the tests that must notice."""
    began = time.monotonic()
    try:
        with copied() as tree:
            apply(mutant, tree)
            prove(tree)
            failed, _, said = red(tree, mutant.tests)
    except (NotRun, subprocess.TimeoutExpired) as error:
        return Trial(mutant, time.monotonic() - began, mutant.tests, str(error))
    lived = tuple(test for test in mutant.tests if test not in failed)
    return Trial(mutant, time.monotonic() - began, lived, said if lived else "")


def _row(trial: Trial) -> str:
    verdict = "killed" if trial.killed else "SURVIVES"
    by = ", ".join(test.partition("::")[2] for test in trial.mutant.tests)
    return f"{trial.mutant.name:<44} {verdict:<9} {trial.seconds:6.1f} s  {by}"


def _tell(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def main() -> int:
    """Try the mutants that are named, or all; exit status 1 if any survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only mutants whose name has one of these in it")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once (default 2)")
    arguments = parser.parse_args()
    wanted = arguments.names or [""]
    mutants = [one for one in read_all() if any(word in one.name for word in wanted)]
    began = time.monotonic()
    unbroken = check_unbroken(mutants)
    _tell(f"{'without any mutant':<44} {'green':<9} {unbroken:6.1f} s")
    trials = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for trial in pool.map(attempt, mutants):
            trials.append(trial)
            _tell(_row(trial), *([trial.trouble] if trial.trouble else []))
    survived = [trial for trial in trials if not trial.killed]
    _tell(
        f"{len(trials) - len(survived)} of {len(trials)} killed, {time.monotonic() - began:.0f} s"
    )
    return 1 if survived or not trials else 0


if __name__ == "__main__":
    raise SystemExit(main())
