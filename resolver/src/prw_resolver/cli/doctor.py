"""``prw resolver doctor``: whether the invariants of every stream hold."""

from __future__ import annotations

import asyncio

import typer

from prw.errors import Code, PrwError
from prw_base.findings import COLUMNS, Finding, print_findings
from prw_base.options import JsonOption
from prw_base.server.database import Database
from prw_base.tables import print_table
from prw_resolver.bootstrap import databases, doctor_dsn, read_epoch
from prw_resolver.cli.session import settings_of
from prw_resolver.doctor.service import CHECKS, examine


def doctor(context: typer.Context, json: JsonOption = False) -> None:
    """Look whether the invariants of every tenant's stream hold: positions, facts and events, what is pruned.

    Reads as one moment and changes nothing; it may run beside a server. Exit status 0: nothing found; 1: something is.
    """
    settings = settings_of(context)
    epoch = read_epoch(settings)

    async def run(dsn: str) -> list[Finding]:
        async with await Database.open(dsn, max_size=1) as database:
            return await examine(database, epoch)

    with databases(settings) as dsns:
        dsn = doctor_dsn(settings, dsns)
        if dsn is None:
            raise PrwError(
                Code.VALIDATION_FAILED,
                "set PRW_RESOLVER_DOCTOR_DSN to the login resolver_doctor",
                field="doctor_dsn",
            )
        found = asyncio.run(run(dsn))
    if json:
        print_findings(list(CHECKS), found)
    else:
        print_table("Findings", COLUMNS, [finding.row for finding in found])
    raise typer.Exit(1 if found else 0)
