"""``prw resolver retention`` and ``consumer``: who holds changes back, and what an operator does about it."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_resolver.bootstrap import build_retention, databases, open_parts
from prw_resolver.cli.session import CatalogOption, TenantOption, settings_of
from prw_resolver.stream.model import Stream
from prw_resolver.stream.retained import ConsumerAct
from prw_resolver.stream.retention import Retention

T = TypeVar("T")

consumer = typer.Typer(
    help="Consumers of a stream, which hold back what they have not processed.",
    no_args_is_help=True,
)

ConsumerArgument = Annotated[str, typer.Argument(metavar="CONSUMER", help="The consumer's name.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it is kept with who and when.")]


def retention(
    context: typer.Context, tenant: TenantOption, catalog: CatalogOption, json: JsonOption = False
) -> None:
    """Show who holds changes back from being pruned, the furthest back first.

    Positions and bytes count from the holder to the stream's end; bytes are estimated.
    """
    holds = _with_retention(context, tenant, catalog, lambda held, stream: held.holds(stream))
    columns = (
        "kind",
        "holder",
        "status",
        "position",
        "positions",
        "bytes",
        "seconds",
        "expires_at",
    )
    rows = [
        (
            hold.kind,
            hold.holder,
            hold.status,
            hold.position,
            hold.held,
            hold.held_bytes,
            int(hold.age.total_seconds()),
            hold.expires_at,
        )
        for hold in holds
    ]
    print_table("Held back", columns, rows, json)


@consumer.command("list")
def list_consumers(
    context: typer.Context, tenant: TenantOption, catalog: CatalogOption, json: JsonOption = False
) -> None:
    """List a stream's consumers, retired ones too, with what they last reported."""
    found = _with_retention(context, tenant, catalog, lambda held, stream: held.consumers(stream))
    columns = ("consumer_id", "principal", "status", "reported_position", "reported_at")
    rows = [
        (one.consumer_id, one.principal, one.status, one.reported_position, one.reported_at)
        for one in found
    ]
    print_table("Consumers", columns, rows, json)


@consumer.command("audit")
def audit(
    context: typer.Context, tenant: TenantOption, catalog: CatalogOption, json: JsonOption = False
) -> None:
    """List the last acts on consumers and leases, newest first: who, when and why."""
    found = _with_retention(context, tenant, catalog, lambda held, stream: held.events(stream))
    columns = ("at", "act", "subject", "actor", "reason", "position")
    rows = [(e.at, e.act, e.subject, e.actor, e.reason, e.position) for e in found]
    print_table("Acts", columns, rows, json)


@consumer.command("pause")
def pause(
    context: typer.Context,
    tenant: TenantOption,
    catalog: CatalogOption,
    name: ConsumerArgument,
    reason: ReasonOption = "",
) -> None:
    """Note that a consumer is away: it goes on holding what it has not processed, and returns by reporting."""
    _move(context, tenant, catalog, name, ConsumerAct.PAUSE, reason)


@consumer.command("resume")
def resume(
    context: typer.Context,
    tenant: TenantOption,
    catalog: CatalogOption,
    name: ConsumerArgument,
    reason: ReasonOption = "",
) -> None:
    """Let a paused or retired consumer follow again; what was pruned meanwhile it must rebuild from an export."""
    _move(context, tenant, catalog, name, ConsumerAct.RESUME, reason)


@consumer.command("retire")
def retire(
    context: typer.Context,
    tenant: TenantOption,
    catalog: CatalogOption,
    name: ConsumerArgument,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; required, and kept with who and when.")
    ],
) -> None:
    """Give a consumer up: it holds nothing back any more, and is refused until it is resumed."""
    _move(context, tenant, catalog, name, ConsumerAct.RETIRE, reason)


def _move(
    context: typer.Context, tenant: str, catalog: str, name: str, act: ConsumerAct, reason: str
) -> None:
    actor = f"os:{getpass.getuser()}"
    _with_retention(
        context,
        tenant,
        catalog,
        lambda held, stream: held.move_consumer(stream, name, act, actor, reason),
    )
    typer.echo(f"consumer {name} of {tenant}/{catalog} is {act.value}")


def _with_retention(
    context: typer.Context,
    tenant: str,
    catalog: str,
    work: Callable[[Retention, Stream], Awaitable[T]],
) -> T:
    settings = settings_of(context)

    async def run(dsn: str) -> T:
        async with open_parts(settings, dsn) as parts:
            stream = Stream(tenant, catalog, parts.epoch.current())
            return await work(build_retention(parts), stream)

    with databases(settings) as dsns:
        return asyncio.run(run(dsns.app))
