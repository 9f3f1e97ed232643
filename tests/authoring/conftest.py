"""A new adapter's project in an empty folder, and a shop for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from prw_sdk.testing.server import Site, serving
from tests.authoring.project import Project

_numbers = count(1)


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on loopback."""
    with serving() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A scaffolded project that is the current folder; its package has a name that no other test has met."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    name = f"lamp-shop-{next(_numbers)}"
    made = Project(name, tmp_path / name)
    made.scaffold()
    monkeypatch.chdir(made.folder)
    yield made
    for module in [one for one in sys.modules if one.startswith(made.package)]:
        del sys.modules[module]
