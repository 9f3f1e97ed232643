"""The SQL of the doctor's checks; each names the rows that are not as they should be."""

from __future__ import annotations

from prw_base.findings import Finding
from prw_base.server.database import Connection
from prw_base.server.sql import Statements

_SQL = Statements("prw_resolver.doctor")
MOST = 50
"""Rows of one check that are named one by one."""


async def check(conn: Connection, name: str, remedy: str, history_epoch: int) -> list[Finding]:
    """What one check finds."""
    rows = await _SQL.rows(conn, name, history_epoch=history_epoch, most=MOST)
    return [Finding(check=name, remedy=remedy, **row) for row in rows]
