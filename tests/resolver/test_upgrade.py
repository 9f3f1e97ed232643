"""A database of an older release, with what it held, is brought up to this version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.types.json import Jsonb

from prw_base.ids import uuid7
from prw_base.server import provision
from prw_base.server.migrations import migrate
from prw_base.server.postgres import Cluster
from tests.resolver.writing import CATALOG, QUOTE, TENANT

MIGRATIONS = Path(__file__).parents[2] / "resolver/src/prw_resolver/migrations"
BEFORE_POSITIONS = 13


@pytest.fixture
def old(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """A database as the release before positions in the history left it."""
    package = tmp_path / "released_before"
    package.mkdir()
    (package / "__init__.py").touch()
    for file in sorted(MIGRATIONS.glob("*.sql")):
        if int(file.name[:4]) <= BEFORE_POSITIONS:
            (package / file.name).write_text(file.read_text())
    monkeypatch.syspath_prepend(tmp_path)
    name = f"upgraded_{uuid7().hex}"
    dsns = provision.provision(cluster, name, provision.RESOLVER_ROLES)
    try:
        migrate(dsns["owner"], package.name)
        yield dsns
    finally:
        with psycopg.connect(cluster.dsn, autocommit=True) as admin:
            admin.execute(f"drop database {name} with (force)".encode())


def test_the_history_of_an_older_release_is_given_its_positions(old: dict[str, str]) -> None:
    """For every tenant, though the owner is bound by security, which is forced again afterwards."""
    with psycopg.connect(old["superuser"], autocommit=True) as conn:
        for position, tenant in ((7, TENANT), (9, "ten_synth_b")):
            _accept(conn, tenant, position)
    migrate(old["owner"], "prw_resolver.migrations")
    with psycopg.connect(old["superuser"]) as conn:
        found = conn.execute(
            "select tenant_id, history_epoch, position from resolver.catalog_revision order by 3"
        ).fetchall()
        assert found == [(TENANT, 1, 7), ("ten_synth_b", 1, 9)]
        forced = conn.execute(
            "select bool_and(relforcerowsecurity and relrowsecurity) from pg_class"
            " where oid in ('resolver.outbox'::regclass, 'resolver.catalog_revision'::regclass)"
        ).fetchone()
        assert forced == (True,)


def _accept(conn: psycopg.Connection, tenant: str, position: int) -> None:
    key = {"tenant_id": tenant, "catalog_id": CATALOG}
    conn.execute("set session_replication_role = replica")
    conn.execute(
        "insert into resolver.catalog_revision (tenant_id, catalog_id, aggregate_type, aggregate_id, revision,"
        " decision_id, evidence, state, recorded_at) values (%(tenant_id)s, %(catalog_id)s, 'merchant', 'mer_1', 1,"
        " 'dec_1', %(evidence)s, '{}', now())",
        key | {"evidence": Jsonb([QUOTE])},
    )
    conn.execute(
        "insert into resolver.outbox (tenant_id, catalog_id, history_epoch, position, event_id, aggregate_type,"
        " aggregate_id, revision, event, committed_at) values (%(tenant_id)s, %(catalog_id)s, 1, %(position)s, 'e',"
        " 'merchant', 'mer_1', 1, 'x', now())",
        key | {"position": position},
    )
