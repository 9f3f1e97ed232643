from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import make_conninfo

from prw.errors import Code
from prw_base.deadline import bind_remaining
from prw_base.server.database import (
    CommitUnknown,
    Connection,
    Database,
    UnsafeRole,
    as_prw_error,
)

ADD = "INSERT INTO sample.note VALUES (%s, %s, 'x')"
COUNT = "SELECT count(*) FROM sample.note"
KILL = "SELECT pg_terminate_backend(%s)"


async def count(conn: Connection) -> int:
    """The notes that this transaction sees."""
    row = await (await conn.execute(COUNT)).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_transaction_commits_at_its_end(database: Database) -> None:
    """What was written is there for the next one of the tenant."""
    async with database.transaction("ten_a") as conn:
        await conn.execute(ADD, ("ten_a", 1))
    async with database.transaction("ten_a") as conn:
        assert await count(conn) == 1


async def test_an_error_rolls_everything_back(database: Database) -> None:
    """A rejected request has persisted nothing."""

    async def fail() -> None:
        async with database.transaction("ten_a") as conn:
            await conn.execute(ADD, ("ten_a", 1))
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    async with database.transaction("ten_a") as conn:
        assert await count(conn) == 0


async def test_a_tenant_sees_only_its_own_rows(database: Database) -> None:
    """Row-level security is forced: a forgotten WHERE leaks nothing."""
    async with database.transaction("ten_a") as conn:
        await conn.execute(ADD, ("ten_a", 1))
    async with database.transaction("ten_b") as conn:
        assert await count(conn) == 0


async def test_a_tenant_writes_only_its_own_rows(database: Database) -> None:
    """A row for another tenant is refused by the policy, not by our care."""
    with pytest.raises(errors.InsufficientPrivilege):
        async with database.transaction("ten_a") as conn:
            await conn.execute(ADD, ("ten_b", 1))


async def test_the_setting_does_not_outlive_its_transaction(database: Database) -> None:
    """After a commit it reads as an empty string, which is no tenant (state, "Tenants")."""
    async with database.connection() as conn:
        async with conn.transaction():
            await conn.execute("SELECT set_config('app.tenant_id', 'ten_a', true)")
            await conn.execute(ADD, ("ten_a", 1))
        row = await (await conn.execute("SELECT current_setting('app.tenant_id', true)")).fetchone()
        assert row == ("",)
        assert await count(conn) == 0


async def test_an_empty_tenant_is_no_tenant(database: Database) -> None:
    """A row whose tenant is the empty string would else be everybody's."""
    with pytest.raises(errors.InsufficientPrivilege):
        async with database.transaction(None) as conn:
            await conn.execute(ADD, ("", 1))


async def test_a_read_only_transaction_writes_nothing(database: Database) -> None:
    """A dry run is held to it by the database."""
    with pytest.raises(errors.ReadOnlySqlTransaction):
        async with database.transaction("ten_a", read_only=True) as conn:
            await conn.execute(ADD, ("ten_a", 1))


async def test_a_commit_is_durable_and_a_silent_holder_is_bounded_whatever_the_server_says(
    sample_database: dict[str, str],
) -> None:
    """Nothing is published that a crash may take back, and no lock is held for ever (state, "Hard-won rules")."""
    lax = "-c synchronous_commit=off -c idle_in_transaction_session_timeout=0"
    dsn = make_conninfo(sample_database["product_app"], options=lax)
    show = "SELECT current_setting('synchronous_commit'), current_setting('idle_in_transaction_session_timeout')"
    async with await Database.open(dsn) as opened, opened.transaction("ten_a") as conn:
        assert await (await conn.execute(show)).fetchone() == ("on", "30s")


async def test_a_stronger_durability_is_left_as_it_is(sample_database: dict[str, str]) -> None:
    """Where commits wait for a standby to apply them, they still do."""
    dsn = make_conninfo(
        sample_database["product_app"], options="-c synchronous_commit=remote_apply"
    )
    async with await Database.open(dsn) as opened, opened.transaction("ten_a") as conn:
        setting = await (await conn.execute("SHOW synchronous_commit")).fetchone()
        assert setting == ("remote_apply",)


async def test_a_statement_ends_with_its_timeout(database: Database) -> None:
    """5 s for the API, 30 s for consumers, or what is asked for (contract, "Deadlines")."""
    with pytest.raises(errors.QueryCanceled):
        async with database.transaction("ten_a", timeout=timedelta(milliseconds=50)) as conn:
            await conn.execute("SELECT pg_sleep(5)")


async def test_the_callers_deadline_wins_where_it_is_sooner(database: Database) -> None:
    """A deadline set by the caller is passed down as the statement timeout."""
    with bind_remaining(0.05), pytest.raises(errors.QueryCanceled):
        async with database.transaction("ten_a") as conn:
            await conn.execute("SELECT pg_sleep(5)")


@pytest.mark.parametrize("role", ["superuser", "owner"])
async def test_a_server_refuses_a_role_that_security_does_not_bind(
    sample_database: dict[str, str], role: str
) -> None:
    """A superuser, and who may become the owner, would see every tenant (state, "Tenants")."""
    with pytest.raises(UnsafeRole):
        await Database.open(sample_database[role])


async def test_a_tool_may_open_as_the_owner(sample_database: dict[str, str]) -> None:
    """Only where it says so."""
    async with (
        await Database.open(sample_database["superuser"], allow_owner=True) as opened,
        opened.transaction(None) as conn,
    ):
        assert await count(conn) == 0


async def test_a_serialization_failure_is_tried_again(database: Database) -> None:
    """Up to three times, and the third may succeed."""
    tries = []

    async def work(conn: Connection) -> int:
        tries.append(1)
        if len(tries) < 3:
            raise errors.SerializationFailure
        await conn.execute(ADD, ("ten_a", 1))
        return await count(conn)

    assert await database.run(work, "ten_a") == 1
    assert len(tries) == 3


async def test_a_lost_connection_before_commit_is_tried_again(
    database: Database, sample_database: dict[str, str]
) -> None:
    """Nothing was committed, so the work may run on another connection."""
    pids: list[int] = []

    async def work(conn: Connection) -> int:
        pids.append(conn.info.backend_pid)
        if len(pids) == 1:
            _kill(sample_database, pids[0])
        await conn.execute(ADD, ("ten_a", 1))
        return await count(conn)

    assert await database.run(work, "ten_a") == 1
    assert len(pids) == 2


async def test_a_connection_lost_in_commit_is_never_tried_again(
    database: Database, sample_database: dict[str, str]
) -> None:
    """It may have happened; only a command id can tell (contract, "SQL")."""
    tries = []

    async def work(conn: Connection) -> None:
        tries.append(1)
        _kill(sample_database, conn.info.backend_pid)

    with pytest.raises(CommitUnknown):
        await database.run(work, "ten_a")
    assert len(tries) == 1


async def test_a_broken_rule_is_never_tried_again(database: Database) -> None:
    """It would break again."""
    tries = []

    async def work(conn: Connection) -> None:
        tries.append(1)
        await conn.execute(ADD, ("ten_b", 1))

    with pytest.raises(errors.InsufficientPrivilege):
        await database.run(work, "ten_a")
    assert len(tries) == 1


def test_the_database_away_is_unavailable_and_a_defect_is_not() -> None:
    """What passes by itself may be retried; a defect must not be."""
    away = as_prw_error(psycopg.OperationalError("gone"))
    assert away is not None
    assert away.code is Code.UNAVAILABLE
    assert as_prw_error(errors.UndefinedTable("no")) is None


def _kill(dsns: dict[str, str], pid: int) -> None:
    with psycopg.connect(dsns["superuser"], autocommit=True) as admin:
        admin.execute(KILL, (pid,))
        while admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
            pass
