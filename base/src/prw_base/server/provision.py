"""Roles and databases, made as an administrator; asking twice changes nothing.

The owner role owns schemas and tables and nobody logs in as it; ``prw_migrator`` may become it, and
only migrations do. Servers log in as roles that own nothing (state, "Tenants in the database").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg import sql

from prw_base.server.postgres import Cluster

OWNER: Final = "prw_owner"
MIGRATOR: Final = "prw_migrator"
RESOLVER_DATABASE: Final = "prw_resolver"
RESOLVER_ROLES: Final = ("resolver_app", "resolver_relay", "resolver_pruner", "resolver_doctor")
RESOLVER_DEFINER: Final = "resolver_access"
"""Owns the resolver's functions that must look across tenants, by policies of its own; nobody logs in as it."""
PRODUCT_DATABASE: Final = "prw_product"
PRODUCT_ROLES: Final = ("product_app",)

_LOCK: Final = 0x5052_5701
"""Advisory lock: two programs that provision at once would both make the same role."""


def provision(
    cluster: Cluster, database: str, roles: Sequence[str], owner: str = OWNER
) -> dict[str, str]:
    """Make ``database``, its ``owner`` role and its login ``roles`` where they are missing.

    Returns the DSN of ``database`` for each role, for ``owner`` (who logs in as the migrator), and
    for ``superuser``. Passwords are generated and kept with the cluster.
    """
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        _ensure_roles(admin, cluster, owner, roles)
        if "resolver_app" in roles:
            _ensure_definer(admin, owner)
        _ensure_database(admin, database, owner)
        grant_access(admin, database, roles)
    return dsns(cluster, database, roles)


def dsns(cluster: Cluster, database: str, roles: Sequence[str]) -> dict[str, str]:
    """The DSN of ``database`` for each of ``roles``, for ``owner`` and for ``superuser``."""
    return {role: cluster.dsn_for(database, role) for role in roles} | {
        "owner": cluster.dsn_for(database, MIGRATOR),
        "superuser": cluster.dsn_for(database),
    }


def _ensure_roles(
    admin: psycopg.Connection, cluster: Cluster, owner: str, roles: Sequence[str]
) -> None:
    if not _has_role(admin, owner):
        admin.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(owner)))
    for role in (MIGRATOR, *roles):
        _ensure_login(admin, role, cluster.secrets.password(role))
    member = sql.SQL("GRANT {} TO {}").format(sql.Identifier(owner), sql.Identifier(MIGRATOR))
    admin.execute(member)


def _ensure_definer(admin: psycopg.Connection, owner: str) -> None:
    definer = sql.Identifier(RESOLVER_DEFINER)
    if not _has_role(admin, RESOLVER_DEFINER):
        admin.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(definer))
    admin.execute(sql.SQL("GRANT {} TO {}").format(definer, sql.Identifier(owner)))


def _ensure_login(admin: psycopg.Connection, role: str, password: str) -> None:
    verb = "ALTER" if _has_role(admin, role) else "CREATE"
    admin.execute(
        sql.SQL(
            "{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
            " PASSWORD {}"
        ).format(sql.SQL(verb), sql.Identifier(role), sql.Literal(password))
    )


def _has_role(admin: psycopg.Connection, role: str) -> bool:
    found = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,))
    return found.fetchone() is not None


def _ensure_database(admin: psycopg.Connection, database: str, owner: str) -> None:
    found = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,))
    if found.fetchone() is None:
        names = (sql.Identifier(database), sql.Identifier(owner))
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(*names))


def grant_access(admin: psycopg.Connection, database: str, roles: Sequence[str]) -> None:
    """Nobody but these may connect; temporary tables are for COPY under row-level security."""
    name = sql.Identifier(database)
    members = sql.SQL(", ").join(map(sql.Identifier, (MIGRATOR, *roles)))
    admin.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    admin.execute(sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}").format(name, members))
