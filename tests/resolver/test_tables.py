"""Every table of the resolver's schema holds one tenant's rows back from every other (state, "Tenants")."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from prw_base.scope import Scope
from tests.resolver.catalogue import SCOPE, UNTRUSTED, record, rooms
from tests.resolver.writing import app

OTHER = Scope("ten_synth_b", "cat_b")

UNPROTECTED = {
    "procrastinate_events": "what happened to a job, by its number; it names no tenant",
    "procrastinate_periodic_defers": "which periodic task ran when; no periodic task is a tenant's",
    "procrastinate_workers": "heartbeats of the processes that work; no rows of a tenant",
}
WITHOUT_TENANT_COLUMN = {"procrastinate_jobs": "its policy reads the tenant in the job's arguments"}

TABLES = """
select c.relname as name, c.relrowsecurity as enabled, c.relforcerowsecurity as forced,
       exists (select from pg_attribute a
                where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnum > 0) as of_tenants,
       coalesce((select array_agg(p.polname || ' ' || coalesce(
                        (select string_agg(r.rolname, ',') from pg_roles r where r.oid = any(p.polroles)), 'everyone'))
                   from pg_policy p where p.polrelid = c.oid), '{}') as policies
  from pg_class c
 where c.relnamespace = 'resolver'::regnamespace and c.relkind in ('r', 'p')
 order by c.relname
"""
LEADING = """
select c.relname as name, i.indexrelid::regclass::text as index
  from pg_class c
  join pg_index i on i.indrelid = c.oid and i.indisprimary
  join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
 where c.relnamespace = 'resolver'::regnamespace and c.relkind = 'r' and a.attname <> 'tenant_id'
   and exists (select from pg_attribute t where t.attrelid = c.oid and t.attname = 'tenant_id')
"""
FOREIGN = """
select k.conname, k.conrelid::regclass::text as name
  from pg_constraint k
 where k.contype = 'f' and k.connamespace = 'resolver'::regnamespace
   and exists (select from pg_attribute t where t.attrelid = k.conrelid and t.attname = 'tenant_id')
   and not exists (select from pg_attribute t
                    where t.attrelid = k.conrelid and t.attname = 'tenant_id' and t.attnum = any(k.conkey))
"""


@pytest.fixture(autouse=True)
async def filled(resolver_database: dict[str, str], tmp_path: Path) -> None:
    """Rows of both tenants in the tables of catalogue, stream, review and identity."""
    for scope in (SCOPE, OTHER):
        async with rooms(resolver_database["resolver_app"], tmp_path, scope) as held:
            shop = record(held.vocabulary, "shop", core__gtin="G", offer__price="1.00", scope=scope)
            market = record(held.vocabulary, "m", source_id=UNTRUSTED, core__gtin="H", scope=scope)
            for number, subject in enumerate((shop, market)):
                job = f"c{number}:identify:0"
                await held.identifier.identify(subject, held.vocabulary, job_id=job, last=True)
            woken = record(held.vocabulary, "late", core__gtin="H", scope=scope)
            await held.identifier.identify(
                woken, held.vocabulary, job_id="c3:identify:0", last=False
            )
            await held.feed.register(scope.tenant_id, scope.catalog_id, "product", "product-1")
            await held.releases.release_due(scope, held.vocabulary, limit=1)


def tables(superuser: psycopg.Connection[dict[str, Any]]) -> list[dict[str, Any]]:
    """The schema's tables, with how they are protected."""
    return superuser.execute(TABLES).fetchall()


def test_every_table_is_protected_or_says_why_not(
    superuser: psycopg.Connection[dict[str, Any]],
) -> None:
    """Security is enabled and forced; nobody but definer, relay and doctor sees more than one tenant."""
    found = tables(superuser)
    assert len(found) > 30
    open_ones = {table["name"] for table in found if not (table["enabled"] and table["forced"])}
    assert open_ones == set(UNPROTECTED)
    nameless = {
        table["name"]
        for table in found
        if table["name"] not in UNPROTECTED and not table["of_tenants"]
    }
    assert nameless == set(WITHOUT_TENANT_COLUMN)
    for table in found:
        if table["name"] in UNPROTECTED or table["name"] in WITHOUT_TENANT_COLUMN:
            continue
        wide = {policy for policy in table["policies"] if policy != "by_tenant everyone"}
        across = (" resolver_access", " resolver_relay", " resolver_doctor")
        assert all(policy.endswith(across) for policy in wide), table
        assert "by_tenant everyone" in table["policies"], table


def test_every_key_starts_with_the_tenant(superuser: psycopg.Connection[dict[str, Any]]) -> None:
    """Foreign keys bypass row-level security, so that they name the tenant too."""
    assert superuser.execute(LEADING).fetchall() == []
    assert superuser.execute(FOREIGN).fetchall() == []


def test_nothing_of_another_tenant_can_be_seen_changed_or_made(
    superuser: psycopg.Connection[dict[str, Any]], resolver_database: dict[str, str]
) -> None:
    """For every table: as tenant b no row of tenant a is selected, updated, deleted or inserted.

    Seen to fail with the policy of one table left out.
    """
    with app(resolver_database, OTHER.tenant_id) as conn:
        filled_ones = 0
        for table in tables(superuser):
            if not table["of_tenants"] or table["name"] in UNPROTECTED:
                continue
            name = sql.Identifier(table["name"])
            count = sql.SQL("select count(*) as held from {} where tenant_id = %s").format(name)
            row = superuser.execute(count, (SCOPE.tenant_id,)).fetchone()
            assert row is not None
            filled_ones += row["held"] > 0
            _assert_closed(conn, name)
        assert filled_ones > 20


def _assert_closed(conn: psycopg.Connection[Any], name: sql.Identifier) -> None:
    schema = sql.SQL("resolver.{}").format(name)
    seen = conn.execute(sql.SQL("select distinct tenant_id from {}").format(schema)).fetchall()
    assert {row[0] for row in seen} <= {OTHER.tenant_id}, name
    foreign = sql.SQL("tenant_id = {}").format(sql.Literal(SCOPE.tenant_id))
    for statement in (
        sql.SQL("update {} set tenant_id = tenant_id where {}"),
        sql.SQL("delete from {} where {}"),
    ):
        with suppress(errors.InsufficientPrivilege):  # not even of its own
            assert conn.execute(statement.format(schema, foreign)).rowcount == 0, name
    # The policy is asked before any constraint, so that a row of nothing but the tenant will do.
    with pytest.raises(errors.InsufficientPrivilege):
        conn.execute(
            sql.SQL("insert into {} (tenant_id) values (%s)").format(schema), (SCOPE.tenant_id,)
        )


def test_without_a_tenant_there_is_nothing(
    superuser: psycopg.Connection[dict[str, Any]], resolver_database: dict[str, str]
) -> None:
    """After a commit the setting reads as an empty string: that is no tenant, and sees no row."""
    with app(resolver_database, "") as conn:
        for table in tables(superuser):
            if table["of_tenants"] and table["name"] not in UNPROTECTED:
                name = sql.SQL("resolver.{}").format(sql.Identifier(table["name"]))
                assert conn.execute(sql.SQL("select from {}").format(name)).fetchall() == [], name
