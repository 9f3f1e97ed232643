"""The SQL of the doctor's checks; each names the rows that are not as they should be."""

from __future__ import annotations

from prw_base.findings import Finding
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_product.publish.model import Generation

_SQL = Statements("prw_product.doctor")
MOST = 50
"""Rows of one check that are named one by one."""


async def check(conn: Connection, name: str, remedy: str, generation: Generation) -> list[Finding]:
    """What one check finds in a generation, whose tables the transaction has entered."""
    rows = await _SQL.rows(conn, name, **generation.ids, most=MOST)
    tenant, catalog = generation.scope.tenant_id, generation.scope.catalog_id
    return [Finding(name, tenant, catalog, row["place"], row["what"], remedy) for row in rows]
