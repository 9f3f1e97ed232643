"""``prw resolver client`` and ``prw resolver operator``: who may call, and with which token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from prw_base.files import write_private
from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_resolver.access import service
from prw_resolver.access.model import COLLECTOR_SCOPES, PRODUCT_SCOPES, ClientGrant, role_named
from prw_resolver.access.service import Issuer, Provisioned
from prw_resolver.bootstrap import build_issuer
from prw_resolver.cli.session import (
    CatalogOption,
    TenantOption,
    TokenFileOption,
    settings_of,
    with_database,
)
from prw_resolver.settings import ResolverSettings

client = typer.Typer(help="Machine clients: collectors and services.", no_args_is_help=True)
operator = typer.Typer(help="People who review and administer.", no_args_is_help=True)


class Purpose(StrEnum):
    """What a machine is for; decides its scopes where none are given."""

    COLLECTOR = "collector"
    PRODUCT = "product"


class RoleName(StrEnum):
    """Roles of people, each including the ones before it."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OPERATOR_ADMIN = "operator_admin"


_SCOPES = {Purpose.COLLECTOR: COLLECTOR_SCOPES, Purpose.PRODUCT: PRODUCT_SCOPES}


@client.command("provision")
def provision_client(
    context: typer.Context,
    tenant: TenantOption,
    catalog_id: CatalogOption,
    instance: Annotated[
        str, typer.Option("--instance", help="The stable instance; becomes the token's subject.")
    ],
    worker: Annotated[
        str | None,
        typer.Option("--worker", help="The worker whose captures it submits; for collectors."),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="A source it may fetch; repeatable.")
    ] = None,
    purpose: Annotated[
        Purpose, typer.Option("--for", help="What it is for: sets the scopes.")
    ] = Purpose.COLLECTOR,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="A scope, instead of --for's; repeatable.")
    ] = None,
    token_file: TokenFileOption = None,
    json: JsonOption = False,
) -> None:
    """Make a client for a machine and print its token, once.

    A client that the instance had before is superseded: its token fails at the next call.
    """
    grant = ClientGrant(
        tenant_id=tenant,
        catalog_id=catalog_id,
        instance_id=instance,
        scopes=tuple(scope or _SCOPES[purpose]),
        worker_id=worker,
        sources=tuple(source or ()),
    )
    settings = settings_of(context)
    made = _provision(settings, lambda issuer: service.provision_client(issuer, grant))
    _show("Client", made, token_file, json)


@client.command("revoke")
def revoke_client(
    context: typer.Context,
    tenant: TenantOption,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A client id, an instance or a person.")
    ],
    json: JsonOption = False,
) -> None:
    """End the active clients of that name; their next call fails with CREDENTIAL_REVOKED."""
    settings = settings_of(context)
    ended = with_database(settings, lambda db: service.revoke_client(db, tenant, name))
    print_table("Revoked", ("client_id",), [(client_id,) for client_id in ended], json)


@operator.command("provision")
def provision_operator(
    context: typer.Context,
    tenant: TenantOption,
    catalog_id: CatalogOption,
    subject: Annotated[str, typer.Argument(metavar="PERSON", help="The person's stable name.")],
    role: Annotated[RoleName, typer.Option("--role", help="Each includes the ones before it.")],
    token_file: TokenFileOption = None,
    json: JsonOption = False,
) -> None:
    """Give a person a role in a tenant and print a token for scripts, once.

    A role and token that the person had before are superseded.
    """
    settings = settings_of(context)
    made = _provision(
        settings,
        lambda issuer: service.provision_operator(
            issuer, tenant, catalog_id, subject, role_named(role)
        ),
    )
    _show("Person", made, token_file, json)


def _provision(
    settings: ResolverSettings, work: Callable[[Issuer], Awaitable[Provisioned]]
) -> Provisioned:
    return with_database(settings, lambda db: work(build_issuer(settings, db)))


def _show(title: str, made: Provisioned, token_file: Path | None, json: bool) -> None:
    if token_file is not None:
        write_private(token_file, made.token.encode())
    shown = made.token if token_file is None else str(token_file)
    columns = ("subject", "client_id", "token" if token_file is None else "token_file")
    print_table(title, columns, [(made.subject, made.client_id, shown)], json)
