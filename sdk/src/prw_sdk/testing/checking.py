"""Running the conformance suite offline, as a table and a list of what is left to do (``prw adapter check``)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from prw_sdk.testing.subject import Subject

MOST_LINES = 30
"""Of more lines about one thing than this the rest is counted."""

LONGEST = 600
"""Seconds that the suite may take for one adapter."""

_TO_DO = re.compile(r"#\s*TO DO:?\s*(?P<what>.+)")
_INI = "[pytest]\naddopts =\n"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check came to for one fixture (`case` is empty where it is about all)."""

    room: str
    check: str
    case: str
    outcome: str
    told: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Checked:
    """The suite's verdicts over one adapter. `broken` is what pytest said where it could not run."""

    subject: Subject
    verdicts: tuple[Verdict, ...]
    broken: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether every check that ran passed, and some did."""
        return not self.broken and bool(self.verdicts) and not self.count("failed")

    def count(self, outcome: str) -> int:
        """How many verdicts are of that outcome."""
        return sum(one.outcome == outcome for one in self.verdicts)

    @property
    def name(self) -> str:
        """Name and version, as far as they are declared."""
        adapter = self.subject.adapter
        name = getattr(adapter, "name", None) or adapter.__name__
        return f"{name} {getattr(adapter, 'version', '')}".strip()

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each part of the suite: name, then how many passed, failed and were left out, and seconds."""
        rooms: dict[str, list[Verdict]] = defaultdict(list)
        for one in self.verdicts:
            rooms[one.room].append(one)
        return [(self.name, room, *_counts(found)) for room, found in rooms.items()]

    def as_json(self) -> dict[str, object]:
        """Everything, as JSON values."""
        return {
            "adapter": getattr(self.subject.adapter, "name", None),
            "version": getattr(self.subject.adapter, "version", None),
            "fixtures": str(self.subject.fixtures),
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "skipped": self.count("skipped"),
            "broken": self.broken,
            "to_do": [{"what": what, "how": lines} for what, lines in self.to_do()],
        }

    def told(self) -> str:
        """The list of what is left to do, as a person reads it."""
        found = self.to_do()
        things = "1 thing" if len(found) == 1 else f"{len(found)} things"
        lines = [f"{self.name}: {things} to do"]
        for number, (what, how) in enumerate(found, start=1):
            lines += [f"{number:2}. {what}", *(f"      {line}" for line in how[:MOST_LINES])]
            if len(how) > MOST_LINES:
                lines.append(f"      … and {len(how) - MOST_LINES} more lines")
        return "\n".join(lines)

    def to_do(self) -> list[tuple[str, list[str]]]:
        """What is left to do: a heading, and the lines that say what to write; checks that say the same are one."""
        by_check: dict[str, dict[str, None]] = defaultdict(dict)
        for one in self.verdicts:
            if one.outcome == "failed":
                by_check[_words(one.check)].update(dict.fromkeys(_lines(one)))
        checks: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for check, lines in by_check.items():
            checks[tuple(lines)].append(check)
        found = [(_heading(names), list(lines)) for lines, names in checks.items()]
        if self.broken:
            found.insert(0, ("the suite could not run", self.broken.splitlines()[-12:]))
        marks = list(_marks(self.subject)) if found else []
        return [*found, *([("marks that are still in the code", marks)] if marks else [])]


class NoPytest(Exception):
    """The suite needs pytest, which an extra of this distribution brings."""


COLUMNS = ("adapter", "checks", "passed", "failed", "left_out", "seconds")


def check_all(subjects: Iterable[Subject], folder: Path) -> list[Checked]:
    """Run the suite over several adapters, as many at once as there are cores."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(partial(check, folder=folder), subjects))


def check(subject: Subject, folder: Path) -> Checked:
    """Run the suite over one adapter, in a process of its own that reaches no network.

    `folder` is where its project is, or any other where it is installed. Raises `NoPytest`.
    """
    if find_spec("pytest") is None:
        raise NoPytest("pytest is not installed: pip install 'prw-sdk[testing]'")
    with TemporaryDirectory(prefix="prw-check-") as scratch:
        verdicts, ini = Path(scratch) / "verdicts.jsonl", Path(scratch) / "pytest.ini"
        ini.write_text(_INI, "utf-8")
        arguments = [
            *("-q", "-p", "no:cacheprovider", "-p", "prw_sdk.testing.verdicts", "-c", str(ini)),
            f"--adapter={getattr(subject.adapter, 'name', None) or subject.adapter.__name__}",
            f"--adapter-fixtures={subject.fixtures.resolve()}",
            f"--adapter-verdicts={verdicts}",
        ]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *arguments],
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
                cwd=folder,
                env={**os.environ, "PYTEST_ADDOPTS": ""},
            )
        except subprocess.TimeoutExpired:
            return Checked(subject, (), f"it did not end within {LONGEST} seconds")
        found = tuple(_read(verdicts))
    # 0: all passed, 1: some failed; whatever else pytest ends with is about pytest itself
    broken = "" if done.returncode in (0, 1) and found else (done.stderr or done.stdout)
    return Checked(subject, found, broken.strip())


def _read(path: Path) -> Iterator[Verdict]:
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            yield Verdict(**json.loads(line))


def _counts(found: list[Verdict]) -> tuple[object, ...]:
    by = [
        sum(one.outcome == outcome for one in found) for outcome in ("passed", "failed", "skipped")
    ]
    return (*by, round(sum(one.seconds for one in found), 1))


def _words(check: str) -> str:
    return check.removeprefix("test_").replace("_", " ")


def _heading(checks: list[str]) -> str:
    others = len(checks) - 1
    return checks[0] + (f" (and {others} more checks)" if others else "")


def _lines(one: Verdict) -> Iterator[str]:
    where = f"{one.case}: " if one.case else ""
    for line in one.told.splitlines():
        if line.strip():
            yield line if line.startswith(("→", " ", "-", "+", "@")) else f"{where}{line}"


def _marks(subject: Subject) -> Iterator[str]:
    """The to-do marks in the package of the adapter."""
    path = getattr(sys.modules.get(subject.adapter.__module__), "__file__", None)
    if path is None or "." not in subject.adapter.__module__:
        return
    for module in sorted(Path(path).parent.glob("*.py")):
        for number, line in enumerate(module.read_text("utf-8").splitlines(), start=1):
            found = _TO_DO.search(line)
            if found:
                yield f"{module.name}:{number}: {found['what']}"
