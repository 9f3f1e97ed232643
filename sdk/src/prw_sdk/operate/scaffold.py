"""A new adapter's distribution: everything but what only its author can say."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 60
_TEMPLATES = {
    "pyproject.toml": "pyproject.toml.tmpl",
    "README.md": "README.md.tmpl",
    "src/{package}/__init__.py": "init.py.tmpl",
    "src/{package}/inventory.py": "inventory.py.tmpl",
    "src/{package}/adapter.py": "adapter.py.tmpl",
    "tests/test_conformance.py": "test_conformance.py.tmpl",
    "fixtures/.gitkeep": None,
}


class CannotScaffold(Exception):
    """The name or the folder will not do; the message says what to write instead."""


def scaffold(name: str, folder: Path) -> list[Path]:
    """Write the distribution of an adapter into a new folder; the files, in order. Raises `CannotScaffold`."""
    package = package_of(name)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CannotScaffold(f"{folder} is there already: give another --folder, or remove it")
        values = {"name": name, "package": package, "prefix": _prefix(name)}
        return [
            _write(folder / path.format(package=package), template, values)
            for path, template in _TEMPLATES.items()
        ]
    except OSError as refused:
        raise CannotScaffold(f"{refused.filename}: {refused.strerror}") from refused


def package_of(name: str) -> str:
    """The import package of an adapter's name; raises `CannotScaffold` where that would not work."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise CannotScaffold(
            f"{name!r} is no name of an adapter: write lower-case words with hyphens between, such as lumen-web"
        )
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or _is_taken(name, package):
        raise CannotScaffold(
            f"{name!r} is the name of something that Python or an installed package has: write {name}-shop, or another"
        )
    return package


def _is_taken(name: str, package: str) -> bool:
    if find_spec(package) is not None:
        return True
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _prefix(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def _write(path: Path, template: str | None, values: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "" if template is None else _filled(template, values)
    path.write_text(text, "utf-8")
    return path


def _filled(template: str, values: dict[str, str]) -> str:
    source = files(__package__).joinpath("templates", template)
    return Template(source.read_text("utf-8")).substitute(values)
