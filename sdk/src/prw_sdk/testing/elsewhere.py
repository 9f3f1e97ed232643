"""Reading an adapter's fixtures in another process, which differs from this one in all that should not matter."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from prw_sdk.testing import fixtures
from prw_sdk.testing.bench import Bench, fail
from prw_sdk.testing.fixtures import BadFixture
from prw_sdk.testing.guard import Reached, without_io
from prw_sdk.testing.reading import outcome

LONGEST = 60
"""Seconds that the other process is given."""

_START = "import json, sys; sys.path[:] = json.load(sys.stdin); from prw_sdk.testing import elsewhere; elsewhere.main()"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What was read of each case there, and what reading reached for."""

    read: Mapping[str, Any]
    reached: tuple[str, ...]


@lru_cache(maxsize=1)
def elsewhere(bench: Bench) -> Elsewhere:
    """Read every fixture in another process, once; fails the check where the adapter cannot be had there."""
    bench.fresh()
    adapter = bench.subject.adapter
    done = subprocess.run(
        [
            *(sys.executable, "-c", _START),
            *(adapter.__module__, adapter.__qualname__, str(bench.subject.fixtures.resolve())),
        ],
        input=json.dumps(sys.path),
        env={**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Pacific/Auckland", "LC_ALL": "C"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    if done.returncode:
        advice = "→ the adapter has to be importable by its name in another process"
        fail(done.stderr[-2000:], advice)
    told = json.loads(done.stdout)
    return Elsewhere(told["read"], tuple(told["reached"]))


def main() -> None:
    """What the other process does; its arguments are a module, a class and a folder of fixtures."""
    module, name, folder = sys.argv[1:]
    adapter: Any = importlib.import_module(module)
    for step in name.split("."):
        adapter = getattr(adapter, step)
    cases = []
    for path in sorted(Path(folder).glob(f"*/{fixtures.CAPTURE}")):
        try:
            cases.append(fixtures.read(path.parent, adapter))
        except BadFixture:
            continue
    found: dict[str, Any] = {}
    with without_io(adapter) as reached:
        for case in cases:
            try:
                found[case.case] = outcome(adapter(), case.capture)
            except Reached:
                found[case.case] = None
    json.dump({"read": found, "reached": reached}, sys.stdout)
