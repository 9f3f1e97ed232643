"""One tenant reaches nothing of another's: every table of access and intake (state, "Tenants in the database")."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.resolver.collecting import Running, capture

TABLES = (
    "tenant",
    "catalog",
    "source",
    "binding",
    "source_grant",
    "person",
    "artifact",
    "upload",
    "capture",
    "capture_part",
    "receipt",
    "collector_instance",
)
EVIDENCE = ("artifact", "capture", "capture_part", "receipt")


@pytest.fixture
async def filled(resolver: Running) -> None:
    """Rows of both tenants in every table."""
    for tenant in ("ten_synth_a", "ten_synth_b"):
        source = f"{tenant}.src_one"
        collector = await resolver.collector(tenant)
        await resolver.person(tenant)
        collector = await resolver.collector(tenant)
        await collector.register(worker_id="cw_one", instance_id="ci_one", targets=[source])
        await collector.put(source_id=source)
        await collector.submit(capture(source))


def connect(dsns: dict[str, str], role: str, tenant: str) -> psycopg.Connection:
    """A connection of a server's login that works for `tenant`."""
    conn = psycopg.connect(dsns[role], autocommit=True)
    conn.execute("select set_config('app.tenant_id', %s, false)", (tenant,))
    return conn


@pytest.mark.usefixtures("filled")
def test_a_forgotten_where_shows_the_own_tenant_s_rows_only(
    resolver_database: dict[str, str],
) -> None:
    """Row-level security is forced on every table; without a tenant there is nothing at all."""
    for tenant, seen in (("ten_synth_a", {"ten_synth_a"}), ("", set())):
        with connect(resolver_database, "resolver_app", tenant) as conn:
            for table in TABLES:
                query = sql.SQL("select tenant_id from resolver.{}").format(sql.Identifier(table))
                tenants = {row[0] for row in conn.execute(query)}
                assert (table, tenants) == (table, seen)


@pytest.mark.usefixtures("filled")
def test_rows_of_another_tenant_can_be_neither_written_nor_changed(
    resolver_database: dict[str, str],
) -> None:
    """A row that names another tenant is refused; an update reaches none of its rows."""
    with connect(resolver_database, "resolver_app", "ten_synth_a") as conn:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(
                "insert into resolver.artifact (tenant_id, sha256, bytes, media_type)"
                " values ('ten_synth_b', repeat('0', 64), 1, 'text/html')"
            )
        changed = conn.execute(
            "update resolver.binding set status = 'revoked' where tenant_id = 'ten_synth_b'"
        )
        assert changed.rowcount == 0


@pytest.mark.usefixtures("filled")
def test_evidence_is_written_once(resolver_database: dict[str, str]) -> None:
    """No server may change or delete what a fact may rest on."""
    with connect(resolver_database, "resolver_app", "ten_synth_a") as conn:
        for table in EVIDENCE:
            name = sql.Identifier(table)
            for statement in (
                "update resolver.{} set tenant_id = tenant_id",
                "delete from resolver.{}",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    conn.execute(sql.SQL(statement).format(name))


def test_the_relay_reads_none_of_it(resolver_database: dict[str, str]) -> None:
    """Least privilege: the relay's login has the outbox and no more."""
    with connect(resolver_database, "resolver_relay", "ten_synth_a") as conn:
        for table in TABLES:
            query = sql.SQL("select from resolver.{}").format(sql.Identifier(table))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(query)


@pytest.mark.usefixtures("filled")
def test_questions_across_tenants_answer_no_more_than_they_say(
    resolver_database: dict[str, str],
) -> None:
    """The look-ups that see every tenant tell ids that were asked for, or yes and no."""
    with connect(resolver_database, "resolver_app", "ten_synth_a") as conn:
        elsewhere = conn.execute(
            "select resolver.source_is_elsewhere('ten_synth_b.src_one'),"
            " resolver.source_is_elsewhere('ten_synth_a.src_one'), resolver.source_is_elsewhere('x')"
        ).fetchone()
        assert elsewhere == (True, False, False)
        own = conn.execute("select array_agg(receipt_id) from resolver.receipt").fetchone()
        assert own is not None
        found = conn.execute("select resolver.receipts_elsewhere(%s)", (own[0],)).fetchall()
        assert found == []
