"""`prw resolver doctor` finds what is wrong with a stream, by the invariant's name, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql

from prw_base.findings import Finding
from prw_base.server.database import Database
from prw_resolver.doctor.service import CHECKS, examine
from tests.faults.retaining import ME, STREAM, Retaining, retaining

DAMAGES = {
    "i1_positions": "delete from resolver.outbox where position = 5",
    "i2_event_without_fact": "delete from resolver.catalog_revision where position = 5",
    "i2_fact_without_event": "update resolver.outbox set revision = 9 where position = 5",
    "i2_heads": "update resolver.merchant set revision = 4",
    "i4_consumers": "update resolver.stream_retention set pruned_through = 3",
    "i4_leases": "update resolver.stream_retention set pruned_through = 3",
    "i6_reports": "update resolver.stream_consumer set reported_position = 99",
    "floor": "update resolver.stream_retention set pruned_through = 99",
    "epochs": "update resolver.stream_cursor set history_epoch = 2",
}
"""Of each check a damage that it must find."""


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Retaining]:
    """Twelve positions, a consumer and a lease."""
    async with retaining(resolver_database, tmp_path) as made:
        await made.register()
        await made.retention.grant(STREAM, ME)
        yield made


async def found(held: Retaining, history_epoch: int = 1) -> list[Finding]:
    """What the doctor finds, under its own login."""
    async with await Database.open(held.dsns["resolver_doctor"], 1, 1) as database:
        return await examine(database, history_epoch)


def damage(held: Retaining, statement: str) -> None:
    """Do what no program may: past constraints and triggers."""
    with psycopg.connect(held.dsns["superuser"]) as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute(statement.encode())


async def test_nothing_is_found_where_all_holds(held: Retaining) -> None:
    """Also of a stream that is pruned, and of one whose consumers are retired."""
    assert await found(held) == []
    held.one("update resolver.stream_lease set ended_at = now() returning 1")
    await held.rooms.feed.report(STREAM, "product", ME, 7)
    assert await held.pruner.prune(STREAM) == 7
    assert await found(held) == []


@pytest.mark.parametrize("check", CHECKS)
async def test_a_damage_is_found_by_its_check(held: Retaining, check: str) -> None:
    """I1, I2, I4, I6: with the tenant, the place and what to do."""
    damage(held, DAMAGES[check])
    by_check = {one.check: one for one in await found(held)}
    assert check in by_check
    assert (by_check[check].tenant_id, by_check[check].catalog_id) == (
        STREAM.tenant_id,
        STREAM.catalog_id,
    )
    assert by_check[check].place
    assert by_check[check].remedy


async def test_the_present_epoch_is_the_control_planes(held: Retaining) -> None:
    """A stream that is open under an epoch which is fenced is a finding."""
    assert {one.check for one in await found(held, 2)} == {"epochs"}


def test_the_doctors_role_reads_no_content_and_writes_nothing(held: Retaining) -> None:
    """Positions and revisions, never an event's bytes, a fact's state or evidence."""
    with psycopg.connect(held.dsns["resolver_doctor"], autocommit=True) as conn:
        for statement in (
            "select event from resolver.outbox",
            "select state from resolver.catalog_revision",
            "select title from resolver.catalog_item",
            "update resolver.stream_cursor set position = 1",
            "delete from resolver.outbox",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(statement.encode())
        tables = conn.execute(
            "select relname from pg_class where relnamespace = 'resolver'::regnamespace and relkind = 'r'"
            " and not has_any_column_privilege(oid, 'select')"
        ).fetchall()
        assert len(tables) > 20
        for (table,) in tables:
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(sql.SQL("select from resolver.{}").format(sql.Identifier(table)))
