"""The page of invariants is true: what it names exists, and every name leads from the page to the test and back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "invariants.md"
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)#]+)\)")
NAME = re.compile(r"\b(?:INV-0\d|AW-0\d|I[1-9]|T1?\d|SPK-\d\d|[Rr]ule (?:8|15))\b")
BUILT, NOT_BUILT = PAGE.read_text("utf-8").split("## Not built")
IN_CODE = re.compile(r"\b(?:INV-0\d|AW-0\d|[Rr]ule (?:8|15))\b")
"""Names that stand in what enforces them, too."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the first tables: the rule, the files that enforce it, the tests that prove it."""

    rule: str
    files: tuple[Path, ...]
    tests: tuple[tuple[str, Path], ...]

    @property
    def names(self) -> frozenset[str]:
        """The names of rules that the row is about."""
        return frozenset(name.lower() for name in NAME.findall(self.rule))

    def __str__(self) -> str:
        return self.rule[:30]


def rows() -> Iterator[Row]:
    """Every row above the second part."""
    for line in BUILT.splitlines():
        if not line.startswith("| ") or line.startswith(("| ---", "| rule |", "| test plan |")):
            continue
        rule, *rest = line.strip("| ").split(" | ")
        linked = [
            (found["text"], (PAGE.parent / found["target"]).resolve())
            for found in LINK.finditer(" ".join(rest))
        ]
        files = tuple(path for text, path in linked if not text.startswith("`"))
        tests = tuple((text.strip("`"), path) for text, path in linked if text.startswith("`"))
        yield Row(rule, files, tests)


ROWS = list(rows())


def docstrings(path: Path) -> dict[str, str]:
    """The docstring of the module with that of each of its functions, by the function's name."""
    tree = ast.parse(path.read_text("utf-8"))
    about = ast.get_docstring(tree) or ""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {n.name: f"{about}\n{ast.get_docstring(n) or ''}" for n in functions}


def names_in_tests() -> dict[str, set[str]]:
    """The names of rules that stand in docstrings of test functions, with those functions."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name, text in docstrings(path).items():
            for rule in NAME.findall(text) if name.startswith("test_") else ():
                found.setdefault(rule.lower(), set()).add(name)
    return found


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_enforces_and_what_proves_a_rule_is_there(row: Row) -> None:
    """Every linked file exists, and every named test is a function of the file that its link names."""
    assert row.tests, "nothing proves it"
    assert [path for path in row.files if not path.is_file()] == []
    missing = [name for name, path in row.tests if name not in docstrings(path)]
    assert missing == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.names], ids=str)
def test_a_rules_name_is_found_in_its_tests_and_in_what_enforces_it(row: Row) -> None:
    """Whoever greps for the name finds both."""
    said = {
        name.lower() for test, path in row.tests for name in NAME.findall(docstrings(path)[test])
    }
    assert row.names <= said
    code = "\n".join(path.read_text("utf-8") for path in row.files).lower()
    for name in IN_CODE.findall(row.rule):
        assert name.lower() in code


def test_every_name_in_a_test_stands_on_the_page() -> None:
    """A rule that gets a test gets its row."""
    shown = frozenset[str]().union(*(row.names for row in ROWS))
    assert {name: tests for name, tests in names_in_tests().items() if name not in shown} == {}


def test_what_is_not_built_says_where_it_attaches() -> None:
    """One line each; what has a row above may stand here only for what of it is missing."""
    lines = [line for line in NOT_BUILT.splitlines() if line.startswith("| ")][2:]
    assert lines
    assert [line for line in lines if not line.strip("| ").partition(" | ")[2]] == []
    for name in ("INV-03",):
        assert name in NOT_BUILT
        assert name not in BUILT
