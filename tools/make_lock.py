"""Write `requirements.lock`: every package that any member or the development needs, pinned with hashes.

The lock is universal (all platforms, Python 3.11 and newer) and holds no address: packages are named by name only.
Resolving happens in a temporary copy, since uv's own lock file records addresses and has no place here.
Versions stay as they are unless `--upgrade` is given. `--check` changes nothing, needs no network, and says
whether the lock holds an address or lacks something that a member requires.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from make_venv import LOCK, ROOT, members
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEADER = "# Written by `make lock`: every package by name, version and hash.\n"
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)( ; [^\\]+)?", re.MULTILINE)
ADDRESS = re.compile(r"://|\bfile:|^\s*-(?!-hash=)|(?:^|\s)@\s")
EXPORT = ["--all-packages", "--all-extras", "--all-groups", "--no-emit-workspace"]
PLAIN = ["--no-header", "--no-annotate", "--quiet"]


def main() -> int:
    """Resolve and write, or with `--check` only look; the exit status is 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, look for mistakes")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    arguments = parser.parse_args()
    if not arguments.check:
        LOCK.write_text(HEADER + _resolve(keep=not arguments.upgrade), encoding="utf-8")
    lock = LOCK.read_text("utf-8")
    problems = [*_addresses(lock), *_lacking(lock)]
    print("\n".join(problems) or "the lock holds every requirement and no address")
    return 1 if problems else 0


def _resolve(*, keep: bool) -> str:
    with tempfile.TemporaryDirectory() as copy:
        for project in [ROOT, *members()]:
            target = Path(copy) / project.relative_to(ROOT)
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(project / "pyproject.toml", target)
        if keep and LOCK.exists():
            _hold(Path(copy) / "pyproject.toml", LOCK.read_text("utf-8"))
        command = [sys.executable, "-m", "uv", "export", *EXPORT, *PLAIN]
        return subprocess.run(
            command, cwd=copy, check=True, stdout=subprocess.PIPE, text=True
        ).stdout


def _hold(project: Path, lock: str) -> None:
    """Tell uv, in the copy, to stay at the versions of the present lock."""
    pins = [f"{name}=={version}{marker.rstrip()}" for name, version, marker in PIN.findall(lock)]
    text = project.read_text("utf-8")
    held = f"[tool.uv]\nconstraint-dependencies = {json.dumps(pins)}\n"
    project.write_text(text.replace("[tool.uv]\n", held, 1), encoding="utf-8")


def _addresses(lock: str) -> Iterator[str]:
    for number, line in enumerate(lock.splitlines(), 1):
        if ADDRESS.search(line.partition("#")[0]):
            yield f"requirements.lock:{number}: holds an address: {line.strip()}"


def _lacking(lock: str) -> Iterator[str]:
    pinned: dict[str, list[str]] = {}
    for name, version, _ in PIN.findall(lock):
        pinned.setdefault(name, []).append(version)
    for project in [ROOT, *members()]:
        for wanted in _requirements(project):
            name = canonicalize_name(wanted.name)
            if not any(wanted.specifier.contains(version) for version in pinned.get(name, [])):
                yield f"{project.relative_to(ROOT)}/pyproject.toml: {wanted} is not in the lock"


def _requirements(project: Path) -> Iterator[Requirement]:
    data = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    table = data.get("project", {})
    groups = [table.get("dependencies", []), *table.get("optional-dependencies", {}).values()]
    groups += data.get("dependency-groups", {}).values()
    own = _workspace_names()
    wanted = (Requirement(text) for group in groups for text in group)
    yield from (requirement for requirement in wanted if requirement.name not in own)


def _workspace_names() -> set[str]:
    root = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return set(root["tool"]["uv"]["sources"])


if __name__ == "__main__":
    sys.exit(main())
