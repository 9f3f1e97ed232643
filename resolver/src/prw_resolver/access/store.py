"""The SQL of callers, tenants, catalogues and sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from prw_base.principal import Kind
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.access.model import ROLES, Caller, ClientGrant, Source, Status

_SQL = Statements("prw_resolver.access")


async def find_caller(conn: Connection, client_id: str) -> Caller | None:
    """The client of that id in whatever tenant, or None."""
    rows = await _SQL.rows(conn, "find_caller", client_id=client_id)
    return _caller(client_id, rows[0]) if rows else None


def _caller(client_id: str, row: Mapping[str, Any]) -> Caller:
    return Caller(
        kind=Kind(row["kind"]),
        tenant_id=row["tenant_id"],
        catalog_id=row["catalog_id"],
        subject=row["subject"],
        client_id=client_id,
        worker_id=row["worker_id"],
        sources=frozenset(row["sources"]),
        scopes=frozenset(row["scopes"]),
        role=ROLES[row["role"]] if row["role"] else None,
        status=Status(row["status"]),
    )


async def source_is_elsewhere(conn: Connection, source_id: str) -> bool:
    """Whether that source is another tenant's and not the present one's."""
    rows = await _SQL.rows(conn, "source_is_elsewhere", source_id=source_id)
    return bool(rows[0]["elsewhere"])


async def put_tenant(conn: Connection, tenant_id: str, name: str) -> None:
    """Record a tenant, or give it another name."""
    await _SQL.rows(conn, "put_tenant", tenant_id=tenant_id, name=name)


async def ensure_tenant(conn: Connection, tenant_id: str) -> None:
    """Record a tenant under its own id, unless it is there."""
    await _SQL.rows(conn, "ensure_tenant", tenant_id=tenant_id)


async def put_catalog(conn: Connection, tenant_id: str, catalog_id: str, name: str) -> None:
    """Record a catalogue, or give it another name."""
    await _SQL.rows(conn, "put_catalog", tenant_id=tenant_id, catalog_id=catalog_id, name=name)


async def put_source(conn: Connection, source: Source) -> bool:
    """Record a source; False where it is there already, in another catalogue."""
    rows = await _SQL.rows(
        conn,
        "put_source",
        tenant_id=source.tenant_id,
        source_id=source.source_id,
        catalog_id=source.catalog_id,
        name=source.name,
        trusted_to_introduce=source.trusted_to_introduce,
        settings=Jsonb(dict(source.settings)),
    )
    return bool(rows)


async def find_source(conn: Connection, tenant_id: str, source_id: str) -> Source | None:
    """One source of the tenant, or None."""
    rows = await _SQL.rows(conn, "find_source", tenant_id=tenant_id, source_id=source_id)
    return Source(**rows[0]) if rows else None


async def catalog_sources(
    conn: Connection, tenant_id: str, catalog_id: str, sources: tuple[str, ...]
) -> frozenset[str]:
    """Which of `sources` the catalogue has."""
    rows = await _SQL.rows(
        conn,
        "catalog_sources",
        tenant_id=tenant_id,
        catalog_id=catalog_id,
        sources=list(sources),
    )
    return frozenset(row["source_id"] for row in rows)


async def replace_client(conn: Connection, grant: ClientGrant, client_id: str) -> None:
    """Record a machine's new client, which supersedes the ones before."""
    tenant_id = grant.tenant_id
    await _SQL.rows(conn, "supersede_clients", tenant_id=tenant_id, instance_id=grant.instance_id)
    await _SQL.rows(
        conn,
        "add_binding",
        tenant_id=tenant_id,
        client_id=client_id,
        catalog_id=grant.catalog_id,
        worker_id=grant.worker_id,
        instance_id=grant.instance_id,
        scopes=sorted(set(grant.scopes)),
    )
    sources = sorted(set(grant.sources))
    await _SQL.rows(conn, "add_grants", tenant_id=tenant_id, client_id=client_id, sources=sources)


async def replace_person(conn: Connection, tenant_id: str, **values: object) -> None:
    """Record a person (`catalog_id`, `subject`, `role`, `client_id`); supersedes the client before."""
    await _SQL.rows(conn, "supersede_persons", tenant_id=tenant_id, subject=values["subject"])
    await _SQL.rows(conn, "add_person", tenant_id=tenant_id, **values)


async def revoke_clients(conn: Connection, tenant_id: str, name: str) -> tuple[str, ...]:
    """End the active clients of that client, instance or person; their ids."""
    rows = await _SQL.rows(conn, "revoke_clients", tenant_id=tenant_id, name=name)
    return tuple(row["client_id"] for row in rows)
