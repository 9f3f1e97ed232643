"""Fixtures of the tests of the walk under faults."""

from __future__ import annotations

import pytest

from prw_base.server.postgres import Cluster
from tests.support.undisturbed import Undisturbed, walk_undisturbed


@pytest.fixture(scope="session")
def undisturbed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A walk over the street that nothing disturbed."""
    return walk_undisturbed(cluster, tmp_path_factory.mktemp("undisturbed") / "walk")
