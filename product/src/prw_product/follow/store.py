"""The SQL of how following goes, for ``status`` and for other processes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_base.server.sql import Statements
from prw_product.follow.model import Condition

_SQL = Statements("prw_product.follow")
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Told:
    """What the follower last said; ``code`` and ``message`` are empty where all is well."""

    condition: Condition
    code: str
    message: str
    told_at: datetime


async def tell_condition(
    database: Database, scope: Scope, condition: Condition, code: str, message: str
) -> None:
    """Note how following goes. Raises psycopg.Error."""
    said = {"condition": condition.value, "code": code}
    # A text of another program may hold what no text of the database does.
    said["message"] = message.replace("\0", "").encode("utf-8", "replace").decode()[:_LONGEST]
    async with database.transaction(scope.tenant_id) as conn:
        await _SQL.run(conn, "tell_condition", **scope.ids, **said)


async def find_condition(conn: Connection, scope: Scope) -> Told | None:
    """What the follower last said, or None before it said anything."""
    row = await _SQL.row(conn, "find_condition", **scope.ids)
    return None if row is None else Told(**row | {"condition": Condition(row["condition"])})
