"""The use cases of access: authenticate a caller, check a source, provision and revoke."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from psycopg.errors import ForeignKeyViolation

from prw.errors import Code, PrwError
from prw_base.ids import new_id
from prw_base.principal import Principal, Role
from prw_base.server.database import Connection, Database
from prw_base.server.tokens import Signer, Verifier
from prw_resolver.access import store
from prw_resolver.access.model import Caller, ClientGrant, Source, check_name, missing


@dataclass(frozen=True, slots=True)
class Provisioned:
    """A new credential. The token is shown once and kept nowhere."""

    client_id: str
    subject: str
    token: str


@dataclass(frozen=True, slots=True)
class Access:
    """What authentication works with."""

    db: Database
    verifier: Verifier


@dataclass(frozen=True, slots=True)
class Issuer:
    """What provisioning works with; tokens are good for `lifetime`, unless their client ends before."""

    db: Database
    signer: Signer
    lifetime: timedelta


async def authenticate(access: Access, token: str) -> Principal:
    """Who holds `token`.

    The binding is read at every call and never cached: a revoked or superseded client fails with CREDENTIAL_REVOKED
    on its next one. INVALID_TOKEN where the token does not verify or names no client of ours.
    """
    identity = access.verifier.verify(token)

    async def find(conn: Connection) -> Caller | None:
        return await store.find_caller(conn, identity.client_id)

    caller = await access.db.run(find, None, read_only=True)
    if caller is None:
        raise PrwError(Code.INVALID_TOKEN, "the token names no client of this resolver")
    return caller.principal(identity.subject)


async def source_scope(
    conn: Connection, principal: Principal, source_id: str, field: str = "source_id"
) -> None:
    """Return where the source is granted to the caller.

    Another tenant's source: TENANT_SCOPE_DENIED. One of the own tenant that is not granted, or one that nobody
    has: SOURCE_SCOPE_DENIED (contract, "Identity of callers"). `conn` works for the caller's tenant.
    """
    if source_id in principal.sources:
        return
    if await store.source_is_elsewhere(conn, source_id):
        raise PrwError(
            Code.TENANT_SCOPE_DENIED, "the source belongs to another tenant", field=field
        )
    raise PrwError(Code.SOURCE_SCOPE_DENIED, f"source {source_id!r} is not granted", field=field)


async def put_tenant(db: Database, tenant_id: str, name: str) -> None:
    """Record a tenant, or give it another name."""
    check_name("tenant", tenant_id)
    async with db.transaction(tenant_id) as conn:
        await store.put_tenant(conn, tenant_id, name or tenant_id)


async def put_catalog(db: Database, tenant_id: str, catalog_id: str, name: str) -> None:
    """Record a catalogue of a tenant, which is made where it is new."""
    check_name("tenant", tenant_id)
    check_name("catalog", catalog_id)
    async with db.transaction(tenant_id) as conn:
        await store.ensure_tenant(conn, tenant_id)
        await store.put_catalog(conn, tenant_id, catalog_id, name or catalog_id)


async def put_source(db: Database, source: Source) -> None:
    """Record a source or change what is said about it; the same again changes nothing.

    NOT_FOUND where the tenant has no such catalogue, VALIDATION_FAILED where the source is another catalogue's.
    """
    try:
        async with db.transaction(source.tenant_id) as conn:
            kept = await store.put_source(conn, source)
    except ForeignKeyViolation as absent:
        raise _no_catalog(source.tenant_id, source.catalog_id) from absent
    if not kept:
        raise PrwError(
            Code.VALIDATION_FAILED,
            f"source {source.source_id!r} belongs to another catalogue of the tenant",
            field="catalog_id",
        )


async def find_source(conn: Connection, tenant_id: str, source_id: str) -> Source | None:
    """One source of the tenant with its settings and trust, or None."""
    return await store.find_source(conn, tenant_id, source_id)


async def provision_client(issuer: Issuer, grant: ClientGrant) -> Provisioned:
    """Make a client for a machine, and its token. A client that the instance had before is superseded.

    NOT_FOUND where the tenant has no such catalogue, or the catalogue no such source.
    """
    client_id = new_id("cli")
    try:
        async with issuer.db.transaction(grant.tenant_id) as conn:
            await _check_sources(conn, grant)
            await store.replace_client(conn, grant, client_id)
    except ForeignKeyViolation as absent:
        raise _no_catalog(grant.tenant_id, grant.catalog_id) from absent
    return _provisioned(issuer, client_id, grant.instance_id)


async def _check_sources(conn: Connection, grant: ClientGrant) -> None:
    held = await store.catalog_sources(conn, grant.tenant_id, grant.catalog_id, grant.sources)
    lacking = missing(grant.sources, held)
    if lacking:
        raise PrwError(
            Code.NOT_FOUND,
            f"catalogue {grant.catalog_id!r} has no source {lacking[0]!r}; put the source first",
            field="sources",
        )


async def provision_operator(
    issuer: Issuer, tenant_id: str, catalog_id: str, subject: str, role: Role
) -> Provisioned:
    """Give a person a role in a tenant, and a token. Whatever they held before is superseded."""
    check_name("subject", subject)
    client_id = new_id("prs")
    try:
        async with issuer.db.transaction(tenant_id) as conn:
            await store.replace_person(
                conn,
                tenant_id,
                catalog_id=catalog_id,
                subject=subject,
                role=role.name.lower(),
                client_id=client_id,
            )
    except ForeignKeyViolation as absent:
        raise _no_catalog(tenant_id, catalog_id) from absent
    return _provisioned(issuer, client_id, subject)


async def revoke_client(db: Database, tenant_id: str, name: str) -> tuple[str, ...]:
    """End the active clients of a client id, an instance or a person; answers their ids.

    The next call with any of their tokens fails with CREDENTIAL_REVOKED. NOT_FOUND where none was active.
    """
    async with db.transaction(tenant_id) as conn:
        ended = await store.revoke_clients(conn, tenant_id, name)
    if not ended:
        raise PrwError(
            Code.NOT_FOUND, f"tenant {tenant_id!r} has no active client {name!r}", field="name"
        )
    return ended


def _provisioned(issuer: Issuer, client_id: str, subject: str) -> Provisioned:
    token = issuer.signer.sign(subject, client_id, issuer.lifetime)
    return Provisioned(client_id, subject, token)


def _no_catalog(tenant_id: str, catalog_id: str) -> PrwError:
    return PrwError(
        Code.NOT_FOUND,
        f"tenant {tenant_id!r} has no catalogue {catalog_id!r}; put the catalogue first",
        field="catalog_id",
    )
