"""The mutants of `make mutants` are worth running: each applies to this tree, and together they break all rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants import run

RULES = {
    "lock released before COMMIT",
    "position taken before its member succeeded",
    "command id not looked up",
    "relay page read in two statements",
    "floor read apart from the page",
    "now() in the pruner",
    "pruner ignores a lease",
    "renewal revives an expired lease",
    "consumer registered without the retention lock",
    "acknowledgement before commit",
    "progress set to the batch's last position",
    "progress passes a parked event",
    "inbox pruned above progress",
    "stale revision overwrites",
    "cutover with H < L",
    "epoch read only at start",
    "NOTIFY inside the transaction",
}
NOT_BUILT = {"inbox pruned above progress"}
"""Rules whose code is not there yet."""


@pytest.mark.parametrize("mutant", run.read_all(), ids=lambda mutant: mutant.name)
def test_t15_a_mutant_applies_and_its_tests_are_there(mutant: run.Mutant) -> None:
    """T15: a patch that no longer fits breaks nothing, and a test that is gone kills nothing.

    `make mutants` runs them; it fails where one survives.
    """
    run.apply(mutant, run.ROOT, only_check=True)
    for test in mutant.tests:
        path, _, name = test.partition("::")
        tree = ast.parse((run.ROOT / path).read_text("utf-8"))
        assert name in {one.name for one in ast.walk(tree) if isinstance(one, _FUNCTIONS)}


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_t15_every_rule_has_its_mutant() -> None:
    """T15: the list of the test plan, and nothing else by another name."""
    assert {mutant.rule for mutant in run.read_all()} == RULES - NOT_BUILT


def test_t15_a_mutant_that_does_not_apply_is_an_error(tmp_path: Path) -> None:
    """A patch that fits nothing is told as such, and is never taken for one that was killed."""
    patch = tmp_path / "gone.patch"
    text = (
        "rule: none\nkilled-by: none\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    )
    patch.write_text(text, "utf-8")
    with pytest.raises(run.NotRun):
        run.apply(run.read(patch), run.ROOT, only_check=True)
