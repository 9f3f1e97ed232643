"""``prw resolver restore``: walks an operator through setting the database back, or promoting a standby."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import typer

from prw_base.options import JsonOption
from prw_base.server.database import Database
from prw_base.tables import print_table
from prw_resolver.bootstrap import control_plane, databases
from prw_resolver.cli.session import settings_of
from prw_resolver.stream import store
from prw_resolver.stream.committer import COMMIT_TIMEOUT
from prw_resolver.stream.epoch import Record, Standing
from prw_resolver.stream.model import Stream

restore = typer.Typer(
    help="Set the database back, or promote a standby, under a new history epoch.",
    no_args_is_help=True,
)
COLUMNS = ("state", "history_epoch", "high_water", "system_identifier", "timeline")
PARTED = ("tenant_id", "catalog_id", "history_epoch", "position")


@restore.command("status")
def status(context: typer.Context, json: JsonOption = False) -> None:
    """Show the trusted epoch, how far its database was seen, and whether a restore is under way."""
    _show(control_plane(settings_of(context)).read(), json)


@restore.command("begin")
def begin(
    context: typer.Context,
    wait: Annotated[
        int,
        typer.Option(
            "--wait", min=0, help="Seconds to wait for commits in flight; the longest may take 30."
        ),
    ] = int(COMMIT_TIMEOUT.total_seconds()),
    json: JsonOption = False,
) -> None:
    """Stop every writer and reader of the history, and wait until no commit is in flight.

    Then stop the servers, restore the database, run `migrate`, and `restore complete`. Again, it changes nothing.
    """
    record = control_plane(settings_of(context)).begin_restore()
    time.sleep(wait)
    _show(record, json)


@restore.command("complete")
def complete(context: typer.Context, json: JsonOption = False) -> None:
    """Issue a new epoch for the database as it was restored, and end every history before it.

    Old streams, leases and exports are fenced, and where each history ends is recorded; new streams begin at 0, and
    every projection rebuilds. Show where the histories part. Then start the servers again.
    """
    settings = settings_of(context)
    plane = control_plane(settings)
    ended = plane.read().history_epoch

    async def run(dsn: str) -> tuple[Standing, list[tuple[Stream, int]]]:
        async with (
            await Database.open(dsn, 1, 1, allow_owner=True) as database,
            database.transaction(None) as conn,
        ):
            standing = await store.standing(conn, ended)
            return standing, await store.fence_before(conn, ended + 1)

    plane.require_restoring()
    with databases(settings) as dsns:
        standing, parted = asyncio.run(run(dsns.migrator))
    record = plane.complete_restore(standing)
    rows = [(s.tenant_id, s.catalog_id, s.history_epoch, position) for s, position in parted]
    print_table(f"Histories end; epoch {record.history_epoch} begins", PARTED, rows, json)


def _show(record: Record, as_json: bool) -> None:
    row = (
        record.state.value,
        record.history_epoch,
        record.high_water,
        record.system_identifier,
        record.timeline,
    )
    print_table("Control plane", COLUMNS, [row], as_json)
