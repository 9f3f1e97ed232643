"""``prw resolver catalog`` and ``prw resolver source``: where facts belong and where they come from."""

from __future__ import annotations

from typing import Annotated

import typer

from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_resolver.access import service
from prw_resolver.access.model import Source
from prw_resolver.cli.session import (
    CatalogOption,
    TenantOption,
    settings_of,
    with_database,
)

catalog = typer.Typer(help="Catalogues of a tenant.", no_args_is_help=True)
source = typer.Typer(
    help="Sources of a catalogue and how far they are trusted.", no_args_is_help=True
)


@catalog.command("put")
def put_catalog(
    context: typer.Context,
    tenant: TenantOption,
    catalog_id: Annotated[str, typer.Argument(metavar="CATALOG", help="The catalogue's id.")],
    name: Annotated[str, typer.Option("--name", help="What people call it.")] = "",
    json: JsonOption = False,
) -> None:
    """Record a catalogue, and its tenant where that is new; the same again changes nothing."""
    settings = settings_of(context)
    with_database(settings, lambda db: service.put_catalog(db, tenant, catalog_id, name))
    columns = ("tenant_id", "catalog_id", "name")
    print_table("Catalogue", columns, [(tenant, catalog_id, name or catalog_id)], json)


@source.command("put")
def put_source(
    context: typer.Context,
    tenant: TenantOption,
    catalog_id: CatalogOption,
    source_id: Annotated[str, typer.Argument(metavar="SOURCE", help="The source's id.")],
    name: Annotated[str, typer.Option("--name", help="What people call it.")] = "",
    trusted: Annotated[
        bool,
        typer.Option(
            "--trusted-to-introduce/--not-trusted",
            help="Whether a record of it may make a new item by rule.",
        ),
    ] = False,
    locale: Annotated[
        str, typer.Option("--locale", help="How its pages write numbers, for example de-DE.")
    ] = "",
    currency: Annotated[
        str, typer.Option("--currency", help="ISO 4217 code of prices that state none.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Record a source or change what is said about it; the same again changes nothing."""
    hints = {"locale": locale, "currency": currency}
    market = {key: value for key, value in hints.items() if value}
    put = Source(tenant, catalog_id, source_id, name or source_id, trusted, market)
    with_database(settings_of(context), lambda db: service.put_source(db, put))
    columns = ("source_id", "name", "trusted_to_introduce", "locale", "currency")
    print_table("Source", columns, [(source_id, put.name, trusted, locale, currency)], json)
