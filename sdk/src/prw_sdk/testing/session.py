"""A pytest session that checks one adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prw_sdk.testing.bench import Bench
from prw_sdk.testing.guard import offline
from prw_sdk.testing.subject import NoSuchAdapter, find

SUITE = Path(__file__).parent / "suite"

_BENCH = pytest.StashKey[Bench]()


def pytest_configure(config: pytest.Config) -> None:
    """Put the suite in the place of the project's own tests; those that were named are run as well."""
    given = config.getoption("--adapter-fixtures")
    folder = config.invocation_params.dir
    try:
        subject = find(
            config.getoption("--adapter"), folder, None if given is None else folder / given
        )
    except NoSuchAdapter as unknown:
        raise pytest.UsageError(str(unknown)) from None
    config.stash[_BENCH] = Bench(subject)
    named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    config.args = [*named, *(str(path) for path in sorted(SUITE.glob("check_*.py")))]


def pytest_report_header(config: pytest.Config) -> str:
    """Which adapter is under test, and with which fixtures."""
    subject = config.stash[_BENCH].subject
    return f"adapter: {subject.adapter.__name__}, fixtures: {subject.fixtures}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a check that asks for a `case` once for each fixture."""
    if "case" in metafunc.fixturenames:
        cases = metafunc.config.stash[_BENCH].cases
        metafunc.parametrize("case", cases, ids=[case.case for case in cases])


@pytest.fixture(scope="session")
def bench(pytestconfig: pytest.Config) -> Bench:
    """The adapter under test with its fixtures."""
    return pytestconfig.stash[_BENCH]


@pytest.fixture(autouse=True)
def _offline() -> Iterator[None]:
    """No check reaches beyond this machine."""
    with offline():
        yield
