"""What every program that serves is told, and where its database is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import psycopg
from pydantic import Field, SecretStr

from prw.errors import Code, PrwError
from prw_base.server.database import UnsafeRole
from prw_base.server.postgres import StartFailed, open_cluster
from prw_base.server.provision import provision
from prw_base.server.rpc import RpcSettings
from prw_base.settings import Settings


class ServerSettings(Settings):
    """The settings that all servers share; the default is one machine with a state folder."""

    state_folder: Path = Path("state")
    """Where the embedded PostgreSQL lives, and what else the program keeps."""
    database_dsn: SecretStr | None = None
    """DSN of the server's login. Without one PostgreSQL is started in the state folder."""
    owner_dsn: SecretStr | None = None
    """DSN of a login that may become `prw_owner`; only migrations use it."""
    admin_dsn: SecretStr | None = None
    """DSN of an administrator of a server where roles and database are to be made, in place of the embedded one."""
    database_pool: int = Field(default=10, ge=2, le=200)
    """Most connections to PostgreSQL of one process."""

    address: str = "127.0.0.1:0"
    """Where gRPC is served, ``host:port``; port 0 takes a free one."""
    certificate: Path | None = None
    """PEM file of the server's certificate; turns TLS on together with `certificate_key`."""
    certificate_key: Path | None = None
    """PEM file of the certificate's key."""
    client_authority: Path | None = None
    """PEM file of the authority that must have signed the client certificates of gRPC (mTLS)."""
    max_calls: int = Field(default=512, ge=1)
    """Most calls at once; one more is OVERLOADED."""
    recheck_every: timedelta = timedelta(seconds=30)
    """An open stream's caller is looked up again this often, and cut off where it was revoked meanwhile."""
    json_logs: bool = False
    """Logs as one JSON object a line."""

    @property
    def rpc(self) -> RpcSettings:
        """Where and within which limits gRPC is served."""
        return RpcSettings(
            address=self.address,
            max_calls=self.max_calls,
            recheck_every=self.recheck_every,
            certificate=self.certificate,
            key=self.certificate_key,
            client_authority=self.client_authority,
        )


@dataclass(frozen=True, slots=True)
class Dsns:
    """Where the database is, for the server's login and for the one that may become the owner."""

    app: str
    owner: str | None
    prefix: str
    """How the settings' environment variables begin."""
    logins: Mapping[str, str] = field(default_factory=dict)
    """The DSNs of all logins by role, where the database was made here."""

    @property
    def migrator(self) -> str:
        """The DSN that migrations use; VALIDATION_FAILED where a given database came without one."""
        if self.owner is None:
            message = f"set {self.prefix}OWNER_DSN to a login that may become prw_owner"
            raise PrwError(Code.VALIDATION_FAILED, message, field="owner_dsn")
        return self.owner


@contextmanager
def open_database_server(
    settings: ServerSettings, database: str, roles: Sequence[str]
) -> Iterator[Dsns]:
    """The database that the settings name, or else ``database`` on the embedded server, made where it is missing.

    The first of ``roles`` is the server's login. An embedded server that this process started is stopped at the end;
    one that was running is left running. What goes wrong with the database within the block is told as PrwError:
    UNAVAILABLE where it does not answer, VALIDATION_FAILED for a login that security would not bind, and for a
    database that was not migrated.
    """
    try:
        if settings.database_dsn is not None:
            app, owner = settings.database_dsn.get_secret_value(), _secret(settings.owner_dsn)
            yield Dsns(app, owner, _prefix(settings))
        else:
            with _embedded(settings, database, roles) as dsns:
                yield dsns
    except psycopg.OperationalError as error:
        raise PrwError(Code.UNAVAILABLE, f"the database does not answer: {error}") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise PrwError(Code.VALIDATION_FAILED, _unmigrated(settings), field="database") from error
    except StartFailed as error:
        raise PrwError(Code.UNAVAILABLE, str(error), field="state_folder") from error
    except UnsafeRole as error:
        raise PrwError(Code.VALIDATION_FAILED, str(error), field="database_dsn") from error


@contextmanager
def _embedded(settings: ServerSettings, database: str, roles: Sequence[str]) -> Iterator[Dsns]:
    cluster = open_cluster(settings.state_folder, _secret(settings.admin_dsn))
    try:
        dsns = provision(cluster, database, roles)
        logins = {role: dsns[role] for role in roles}
        yield Dsns(dsns[roles[0]], dsns["owner"], _prefix(settings), logins)
    finally:
        if cluster.started_here:
            cluster.stop()


def _unmigrated(settings: ServerSettings) -> str:
    program = _prefix(settings).removeprefix("PRW_").rstrip("_").lower()
    return f"it has not the schema of this version: run `prw {program} migrate`"


def _prefix(settings: ServerSettings) -> str:
    return settings.model_config.get("env_prefix", "")


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()
