"""``prw resolver jobs``: captures whose resolution failed for good, and taking them up again."""

from __future__ import annotations

from typing import Annotated

import typer

from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_resolver.cli.session import TenantOption, settings_of, with_database
from prw_resolver.jobs import service

jobs = typer.Typer(help="Captures whose resolution failed for good.", no_args_is_help=True)

CaptureOption = Annotated[
    str | None, typer.Option("--capture", help="Only this capture; all of the tenant's without.")
]


@jobs.command("dead")
def dead_letters(
    context: typer.Context,
    tenant: TenantOption,
    capture: CaptureOption = None,
    json: JsonOption = False,
) -> None:
    """List the dead letters, oldest first: which stage failed, how often, and why."""
    settings = settings_of(context)
    letters = with_database(settings, lambda db: service.dead_letters(db, tenant, capture))
    columns = ("capture_id", "stage", "failures", "code", "detail", "dead_at")
    rows = [
        (held.capture_id, held.stage.value, held.failures, held.code, held.detail, held.dead_at)
        for held in letters
    ]
    print_table("Dead letters", columns, rows, json)


@jobs.command("redrive")
def redrive(
    context: typer.Context,
    tenant: TenantOption,
    capture: CaptureOption = None,
    json: JsonOption = False,
) -> None:
    """Take dead letters up again, from the stage that failed."""
    settings = settings_of(context)
    taken = with_database(settings, lambda db: service.redrive(db, tenant, capture))
    columns = ("capture_id", "attempt_group")
    rows = [(job.capture_id, job.attempt_group) for job in taken]
    print_table("Taken up again", columns, rows, json)
