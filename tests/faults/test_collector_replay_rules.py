"""Each of the fifteen rules of replay-safe ingestion is held by tests that name it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
_NAMED = re.compile(r"[Rr]eplay rules? ((?:\d+(?:, | and )?)+)")


@cache
def named() -> dict[int, list[str]]:
    """The tests by the rules that their docstrings name."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in TESTS.rglob("test_*.py"):
        for name, told in _docstrings(path):
            for numbers in _NAMED.findall(told):
                for number in re.findall(r"\d+", numbers):
                    found[int(number)].append(f"{path.name}::{name}")
    return found


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            yield node.name, ast.get_docstring(node) or ""


@pytest.mark.parametrize("rule", range(1, 16))
def test_every_rule_has_a_test_that_names_it(rule: int) -> None:
    """By "replay rule N" in its docstring, as `grep -rn "replay rule N" tests` finds it."""
    assert named()[rule]


def test_no_test_names_a_rule_that_there_is_not() -> None:
    """There are fifteen."""
    assert max(named()) == 15
