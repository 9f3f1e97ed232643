"""The adapter under test, and where its fixtures are."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging.version import InvalidVersion, Version

from prw_sdk.adapter import Adapter, declaration_faults
from prw_sdk.plugins import GROUP, Problem, brought

FIXTURES = "fixtures"


class NoSuchAdapter(LookupError):
    """No plugin brings an adapter of that name; the message says which ones there are, and what was wrong."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An adapter's class, however it declares, what is wrong with that, and the folder of its fixtures."""

    adapter: type[Adapter]
    faults: tuple[str, ...]
    fixtures: Path


def find(name: str, folder: Path, fixtures: Path | None = None) -> Subject:
    """The adapter of that name: of the project in `folder`, else of what is installed; raises `NoSuchAdapter`.

    Its fixtures are in `fixtures`, else beside the ``pyproject.toml`` of its distribution, else in `folder`.
    """
    problems: list[Problem] = []
    known: set[str] = set()
    for point in (*project_points(folder), *sorted(entry_points(group=GROUP))):
        found, refused = brought(point)
        problems.extend(refused)
        known.update(str(getattr(one, "name", one.__name__)) for one in found)
        fitting = [one for one in found if name in (getattr(one, "name", None), point.name)]
        if fitting:
            adapter = max(fitting, key=_version)
            home = fixtures or (_home(point) or folder) / FIXTURES
            return Subject(adapter, declaration_faults(adapter), home)
    told = "".join(f"\n  {problem}" for problem in problems)
    raise NoSuchAdapter(
        f"no plugin brings the adapter {name!r}; there are: {', '.join(sorted(known)) or 'none'}{told}"
    )


def project_points(folder: Path) -> Iterator[EntryPoint]:
    """The adapters that the project in a folder declares, made importable where it is not installed."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return
    declared = project.get("project", {}).get("entry-points", {}).get(GROUP, {})
    source = folder / "src" if (folder / "src").is_dir() else folder
    if declared and str(source) not in sys.path:
        sys.path.insert(0, str(source))
    for name, module in sorted(declared.items()):
        yield EntryPoint(name, module, GROUP)


def _home(point: EntryPoint) -> Path | None:
    """The folder of an installed distribution's project, where it was installed from one to be edited."""
    told = None if point.dist is None else point.dist.read_text("direct_url.json")
    try:
        url = urlsplit(str(json.loads(told or "{}").get("url", "")))
    except ValueError:
        return None
    return Path(url2pathname(url.path)) if url.scheme == "file" else None


def _version(adapter: type[Adapter]) -> Version:
    try:
        return Version(str(getattr(adapter, "version", "0")))
    except InvalidVersion:
        return Version("0")
