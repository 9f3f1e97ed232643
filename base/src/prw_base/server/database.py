"""The unit of work: the one way to a transaction, bound to one tenant and bounded in time.

Row-level security reads ``app.tenant_id``; the setting is local to the transaction, and afterwards
reads as an empty string, which every policy treats as no tenant.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, LiteralString, Self, TypeVar

import psycopg
from psycopg import errors
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from prw.errors import Code, PrwError
from prw_base.deadline import remaining

Connection = psycopg.AsyncConnection[TupleRow]
T = TypeVar("T")

API_TIMEOUT: Final = timedelta(seconds=5)
CONSUMER_TIMEOUT: Final = timedelta(seconds=30)
ATTEMPTS: Final = 3
IDLE_TIMEOUT: Final = timedelta(seconds=30)
"""How long a transaction may hold its locks without saying anything."""

_BEGIN: Final[LiteralString] = """
SELECT set_config('app.tenant_id', %(tenant)s, true),
       set_config('statement_timeout', %(timeout)s, true),
       set_config('transaction_read_only', %(read_only)s, true),
       set_config('idle_in_transaction_session_timeout', %(idle)s, true),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                  WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)
"""
_WHO: Final[LiteralString] = """
SELECT session_user, rolsuper OR rolbypassrls OR EXISTS (
           SELECT FROM pg_roles AS o
            WHERE o.rolname = 'prw_owner' AND pg_has_role(session_user, o.oid, 'MEMBER'))
  FROM pg_roles WHERE rolname = session_user
"""


class UnsafeRole(RuntimeError):
    """The DSN's role is a superuser, bypasses row-level security, or may become the owner."""


class CommitUnknown(errors.OperationalError):
    """The connection died during COMMIT: it may or may not have happened.

    Only a command id can tell, so this is never tried again here (contract, "SQL").
    """


class Database:
    """A pool of connections of one role to one database."""

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool

    @classmethod
    async def open(
        cls, dsn: str, min_size: int = 1, max_size: int = 10, *, allow_owner: bool = False
    ) -> Self:
        """Open a pool, and prove that its role is bound by row-level security.

        Raises UnsafeRole where it is not, unless ``allow_owner`` (tools only, never a server), and
        psycopg.OperationalError where the server does not answer within ten seconds.
        """
        pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            dsn,
            min_size=min_size,
            max_size=max_size,
            max_waiting=max_size * 20,
            timeout=API_TIMEOUT.total_seconds(),
            kwargs={"autocommit": True, "row_factory": tuple_row},
            check=AsyncConnectionPool.check_connection,
            open=False,
        )
        database = cls(pool)
        try:
            await pool.open(wait=True, timeout=10)
            if not allow_owner:
                await database._refuse_unsafe_role()
        except BaseException:
            await pool.close()
            raise
        return database

    async def _refuse_unsafe_role(self) -> None:
        async with self._pool.connection() as conn:
            row = await (await conn.execute(_WHO)).fetchone()
        if row is None or row[1]:
            name = row[0] if row else "?"
            raise UnsafeRole(f"refusing to serve as {name}: row-level security would not bind it")

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A raw connection in autocommit, for the stream's committer and for listeners."""
        async with self._pool.connection() as conn:
            yield conn

    @asynccontextmanager
    async def transaction(
        self,
        tenant_id: str | None,
        timeout: timedelta = API_TIMEOUT,
        read_only: bool = False,
        *,
        snapshot: bool = False,
    ) -> AsyncIterator[Connection]:
        """One transaction of ``tenant_id`` (None: no tenant): commit at the end, else roll back.

        With ``snapshot`` all of its statements see the database as the first one did.

        Whatever the server's own settings are, its COMMIT is durable when it returns, and a holder
        that falls silent inside of it loses its locks (state, "Hard-won rules").
        ``timeout`` bounds each statement; a caller's deadline that ends sooner wins. Raises
        CommitUnknown where the connection died during COMMIT.
        """
        async with self._pool.connection() as conn:
            finished = False
            try:
                async with conn.transaction():
                    if snapshot:
                        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    await conn.execute(_BEGIN, _settings(tenant_id, timeout, read_only))
                    yield conn
                    finished = True
            except psycopg.OperationalError as error:
                if finished and conn.broken:
                    raise CommitUnknown("the connection died during COMMIT") from error
                raise

    async def run(
        self,
        work: Callable[[Connection], Awaitable[T]],
        tenant_id: str | None,
        timeout: timedelta = API_TIMEOUT,
        read_only: bool = False,
    ) -> T:
        """``work`` in a transaction of its own, tried up to three times.

        Only serialization failures, deadlocks and connections lost before COMMIT are tried again,
        and a statement timeout once, so ``work`` may run more than once and must have no effect
        outside of the transaction.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self.transaction(tenant_id, timeout, read_only) as conn:
                    return await work(conn)
            except psycopg.OperationalError as error:
                if attempt == ATTEMPTS or not _may_run_again(error, attempt):
                    raise
        raise AssertionError("unreachable")


def _settings(tenant_id: str | None, timeout: timedelta, read_only: bool) -> dict[str, Any]:
    left = remaining()
    bounded = timeout if left is None else min(timeout, left)
    return {
        "tenant": tenant_id or "",
        # Zero would mean no limit at all.
        "timeout": str(max(1, int(bounded.total_seconds() * 1000))),
        "read_only": "on" if read_only else "off",
        "idle": str(int(IDLE_TIMEOUT.total_seconds() * 1000)),
    }


def _may_run_again(error: psycopg.OperationalError, attempt: int) -> bool:
    if isinstance(error, CommitUnknown | PoolTimeout | TooManyRequests):
        return False
    if isinstance(error, errors.QueryCanceled):
        left = remaining()
        return attempt == 1 and (left is None or left > timedelta(0))
    if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
        return True
    # Without a state the server did not say it: the connection is gone. 57P01… is a shutdown.
    return error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))


def as_prw_error(error: psycopg.Error) -> PrwError | None:
    """What a caller may be told of ``error``; None where it is a defect of ours."""
    if isinstance(error, PoolTimeout | TooManyRequests):
        wait = timedelta(seconds=1)
        return PrwError(Code.OVERLOADED, "too many callers wait for the database", retry_after=wait)
    if isinstance(error, errors.ProgramLimitExceeded):
        return PrwError(Code.VALIDATION_FAILED, "a value is too long to be kept")
    if isinstance(error, psycopg.OperationalError):
        return PrwError(Code.UNAVAILABLE, "the database does not answer now")
    return None
