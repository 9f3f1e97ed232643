"""Fixtures of every test: the run's PostgreSQL server and a migrated database of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prw_base.server.postgres import Cluster
from tests.support import postgres

_FOLDER = "prw_state_folder"
_OWN_FOLDER = pytest.StashKey[Path]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Every worker of a run uses the server in the controller's folder."""
    node.workerinput[_FOLDER] = str(_folder(node.config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """The controller, and it alone, stops the server, when all workers have ended."""
    folder = config.stash.get(_OWN_FOLDER, None)
    if folder is not None:
        postgres.remove_state_folder(folder)


def _folder(config: pytest.Config) -> Path:
    given = getattr(config, "workerinput", {}).get(_FOLDER)
    if given is not None:
        return Path(given)
    if _OWN_FOLDER not in config.stash:
        config.stash[_OWN_FOLDER] = postgres.make_state_folder()
    return config.stash[_OWN_FOLDER]


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Cluster:
    """The run's PostgreSQL server, started at the first use."""
    return postgres.open_test_cluster(_folder(pytestconfig))


@pytest.fixture(autouse=True)
def runtime_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A runtime folder of the test's own, so that no test meets what another asked of a host on the same port."""
    folder = tmp_path_factory.mktemp("runtime")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def resolver_database(cluster: Cluster) -> Iterator[dict[str, str]]:
    """A migrated resolver database: DSNs of owner, superuser, resolver_app, resolver_relay."""
    with postgres.fresh_database(cluster, postgres.RESOLVER) as dsns:
        yield dsns


@pytest.fixture
def product_database(cluster: Cluster) -> Iterator[dict[str, str]]:
    """A migrated product database: DSNs of owner, superuser and product_app."""
    with postgres.fresh_database(cluster, postgres.PRODUCT) as dsns:
        yield dsns
