"""The pytest plugin: ``pytest --adapter NAME [--adapter-fixtures DIR]`` runs the conformance suite over an adapter.

Every pytest of the environment loads it, so all that has weight is in a plugin of its own, which this one loads once it
is asked for.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the suite."""
    group = parser.getgroup("prw", "conformance of PRW adapters")
    group.addoption("--adapter", metavar="NAME", help="run the conformance suite over this adapter")
    group.addoption(
        "--adapter-fixtures",
        metavar="DIR",
        help="where its fixtures are (default: beside its pyproject.toml)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the suite where an adapter is named."""
    if config.getoption("--adapter"):
        config.pluginmanager.import_plugin("prw_sdk.testing.session")
