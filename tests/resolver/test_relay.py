"""The relay marks what is published, for every tenant, and can do nothing else (AW-03)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors, sql

from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_resolver.stream.relay import Relay
from tests.resolver.catalogue import Rooms, rooms
from tests.resolver.writing import app, introduction
from tests.support.waiting import until

UNPUBLISHED = "select count(*) as unmarked from outbox where published_at is null"


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Rooms]:
    """Changes of one tenant: fifteen positions."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as opened:
        for number in range(5):
            await opened.committer.commit(introduction(opened.vocabulary, str(number)))
        yield opened


@pytest.fixture
async def relay(resolver_database: dict[str, str], held: Rooms) -> AsyncIterator[Relay]:
    """A relay of small batches."""
    async with await Database.open(resolver_database["resolver_relay"], 1, 2) as database:
        yield Relay(database, batch=6, poll=timedelta(milliseconds=50))


def unpublished(superuser: psycopg.Connection[dict[str, Any]]) -> int:
    """How many changes are not marked."""
    row = superuser.execute(UNPUBLISHED).fetchone()
    assert row is not None
    return int(row["unmarked"])


async def test_it_marks_in_batches_from_the_oldest(
    relay: Relay, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """What is published is a prefix; a mark is never moved."""
    assert await relay.mark() == 6
    first = superuser.execute(
        "select max(position) as last, max(published_at) as at from outbox where published_at is not null"
    ).fetchone()
    assert first is not None
    assert first["last"] == 6
    assert [await relay.mark() for _ in range(3)] == [6, 3, 0]
    again = superuser.execute(
        "select max(published_at) as at from outbox where position <= 6"
    ).fetchone()
    assert again is not None
    assert again["at"] == first["at"]


async def test_two_relays_share_the_work(
    relay: Relay, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """Neither waits for the other's rows, and none is marked twice."""
    assert sum(await asyncio.gather(*(relay.mark() for _ in range(4)))) == 15
    assert unpublished(superuser) == 0


async def test_it_serves_every_tenant(
    resolver_database: dict[str, str],
    tmp_path: Path,
    relay: Relay,
    superuser: psycopg.Connection[dict[str, Any]],
) -> None:
    """One relay for all: by a policy of its own role."""
    other = Scope("ten_synth_b", "cat_other")
    async with rooms(resolver_database["resolver_app"], tmp_path, other) as opened:
        change = introduction(opened.vocabulary, "b", scope=other)
        await opened.committer.commit(change)
    while await relay.mark():
        pass
    assert unpublished(superuser) == 0


async def test_it_survives_a_restart_of_the_database(
    held: Rooms, relay: Relay, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """Its connections are cut as a restart cuts them; it goes on by itself."""
    stop = asyncio.Event()
    running = asyncio.create_task(relay.run(stop))
    await until(lambda: unpublished(superuser) == 0)
    cut = superuser.execute(
        "select count(pg_terminate_backend(pid)) as cut from pg_stat_activity where usename = 'resolver_relay'"
        " and datname = current_database()"
    ).fetchone()
    assert cut is not None
    assert cut["cut"] > 0
    await held.committer.commit(introduction(held.vocabulary, "after"))
    await until(lambda: unpublished(superuser) == 0)
    stop.set()
    await running


FORBIDDEN: tuple[LiteralString, ...] = (
    "insert into resolver.outbox select * from resolver.outbox",
    "delete from resolver.outbox",
    "truncate resolver.outbox",
    "update resolver.outbox set event = 'x'",
    "update resolver.outbox set position = position + 1",
    "update resolver.outbox set tenant_id = 'ten_synth_b'",
    "select resolver.stream_commit('ten_synth_a', 'cat_primary', 1, '[]')",
    "select nextval('resolver.touch')",
    "create table resolver.mine (x int)",
    "set role prw_owner",
)


def test_its_role_may_do_nothing_else(held: Rooms, resolver_database: dict[str, str]) -> None:
    """It reads the outbox and sets one column; every other table of the schema is closed to it."""
    with app(resolver_database, "", "resolver_relay") as conn:
        for statement in FORBIDDEN:
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(statement)
        tables = conn.execute(
            "select relname from pg_class where relnamespace = 'resolver'::regnamespace"
            " and relkind in ('r', 'v', 'p') and relname <> 'outbox'"
        ).fetchall()
        assert len(tables) > 30
        for (table,) in tables:
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(sql.SQL("select from resolver.{}").format(sql.Identifier(table)))
