"""``prw resolver vocabulary``: what records are read and told apart by."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_resolver.cli.session import (
    CatalogOption,
    TenantOption,
    settings_of,
    with_database,
)
from prw_resolver.vocabulary.service import packaged, publish
from prw_sdk.plugins import vocabularies

vocabulary = typer.Typer(
    help="Classes, attributes and identity rules of a catalogue.", no_args_is_help=True
)


@vocabulary.command("publish")
def publish_vocabulary(
    context: typer.Context,
    tenant: TenantOption,
    catalog_id: CatalogOption,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="A TOML file; without it the packaged vocabulary is used."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Publish definitions and identity rules; the same again changes nothing.

    The first identity generation of a catalogue is active at once, and captures are taken from then on.
    """
    settings = settings_of(context)
    done = with_database(settings, lambda db: publish(db, tenant, catalog_id, file))
    columns = ("catalog_id", "new", "known", "active_generation")
    row = (catalog_id, done.new, done.known, done.active_generation)
    print_table("Published vocabulary", columns, [row], json)


@vocabulary.command("example")
def example(
    plugin: Annotated[
        str | None,
        typer.Option("--plugin", help="The vocabulary that this plugin brings, in its place."),
    ] = None,
) -> None:
    """Print the packaged vocabulary, to be changed and published with --file."""
    typer.echo(packaged() if plugin is None else _brought(plugin), nl=False)


def _brought(plugin: str) -> str:
    """The vocabulary of an installed plugin."""
    found, problems = vocabularies()
    if plugin not in found:
        told = [str(problem) for problem in problems if problem.plugin == plugin]
        known = ", ".join(sorted(found)) or "none"
        raise typer.BadParameter(
            told[0] if told else f"{plugin} brings no vocabulary (those that do: {known})"
        )
    return found[plugin]
