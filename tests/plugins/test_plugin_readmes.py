"""The pages of the plugins: their examples work, and their tables name every setting."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from prw_sdk.adapter import Adapter
from prw_sdk.plugins import load

FOLDER = Path(__file__).parents[2] / "plugins"
PAGES = sorted(page for page in FOLDER.glob("*/README.md") if "```toml" in page.read_text("utf-8"))
PLUGINS = load()


def example(page: Path) -> dict[str, Any]:
    """The source of the page's first TOML block."""
    block = re.search(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert block is not None, f"{page} shows no example"
    (source,) = tomllib.loads(block[1])["source"]
    return dict(source)


def adapter(page: Path) -> type[Adapter]:
    """The adapter that the page's example names."""
    return PLUGINS.find(example(page)["adapter"])


def test_every_plugin_loads() -> None:
    """No declaration is refused."""
    assert PLUGINS.problems == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_example_is_accepted(page: Path) -> None:
    """By the adapter's own settings."""
    source = example(page)
    adapter(page).settings(**source["settings"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_setting_is_documented(page: Path) -> None:
    """In a row of the page's table, under its own name."""
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    assert set(adapter(page).settings.model_fields) - named == set()
