"""PostgreSQL for tests: one server a run, a migrated template a deployable, a copy a test."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from prw_base.ids import uuid7
from prw_base.server import provision
from prw_base.server.migrations import migrate
from prw_base.server.postgres import Cluster, open_cluster

DSN_VARIABLE = "PRW_POSTGRES_DSN"
"""An administrator's DSN: the tests then use that server in place of their own."""

_PREFIX = "prw-tests-"


@dataclass(frozen=True, slots=True)
class Deployable:
    """A database of ours: the package with its migrations, and who logs in."""

    name: str
    migrations: str
    roles: tuple[str, ...]


RESOLVER = Deployable("resolver", "prw_resolver.migrations", provision.RESOLVER_ROLES)
PRODUCT = Deployable("product", "prw_product.migrations", provision.PRODUCT_ROLES)


def make_state_folder() -> Path:
    """A folder for this run's server; servers of runs that were killed are stopped and removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _sweep(left)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def _sweep(folder: Path) -> None:
    match = re.fullmatch(rf"{_PREFIX}(\d+)-.*", folder.name)
    ours = folder.stat().st_uid == os.geteuid()
    if match and ours and not Path(f"/proc/{match[1]}").exists():
        remove_state_folder(folder)


def remove_state_folder(folder: Path) -> None:
    """Stop the server of ``folder`` if one runs, and remove the folder."""
    Cluster("", folder / "postgres").stop()
    shutil.rmtree(folder, ignore_errors=True)


def open_test_cluster(folder: Path) -> Cluster:
    """The run's server; every worker of a run shares it."""
    return open_cluster(folder, os.environ.get(DSN_VARIABLE), durable=False)


@contextmanager
def fresh_database(cluster: Cluster, deployable: Deployable) -> Iterator[dict[str, str]]:
    """A migrated database of its own: DSNs by role, with ``owner`` and ``superuser``."""
    template = _template(cluster, deployable)
    name = f"test_{deployable.name}_{uuid7().hex}"
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        names = (sql.Identifier(name), sql.Identifier(template), sql.Identifier(provision.OWNER))
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(*names))
        provision.grant_access(admin, name, deployable.roles)
    try:
        yield provision.dsns(cluster, name, deployable.roles)
    finally:
        _drop(cluster, name)


def _drop(cluster: Cluster, name: str) -> None:
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _template(cluster: Cluster, deployable: Deployable) -> str:
    """The migrated template; the first worker that needs it makes it."""
    name = f"template_{deployable.name}"
    ready = cluster.folder / f"{name}.ready"
    with open(cluster.folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            _make_template(cluster, deployable, name)
            ready.touch()
    return name


def _make_template(cluster: Cluster, deployable: Deployable, name: str) -> None:
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
    dsns = provision.provision(cluster, name, deployable.roles)
    migrate(dsns["owner"], deployable.migrations)
