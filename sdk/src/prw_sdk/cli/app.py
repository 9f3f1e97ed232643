"""The commands of ``prw collect``."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from prw_base.cli import FAILED, INTERRUPTED, NOT_AUTHORISED, describe
from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_sdk import plugins
from prw_sdk.cli import operating
from prw_sdk.cli.options import (
    DEFAULT_CONFIG,
    EPILOG,
    Config,
    Folder,
    command,
    opened,
    refused,
)
from prw_sdk.cli.run import RunResult, push, run_local, run_sending
from prw_sdk.cli.settings import CollectorSettings, SettingsUnusable, load
from prw_sdk.cli.view import SUMMARY, Tally, showing, summary_row
from prw_sdk.report import Event, Watch
from prw_sdk.spool.folder import Spool
from prw_sdk.uplink import Drained

app = typer.Typer(
    help="Fetch sources into a durable spool, and send what it holds to a resolver.",
    epilog=EPILOG,
    no_args_is_help=True,
)

app.add_typer(operating.app)


@app.command(epilog=EPILOG)
@command
def run(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="Sources to run; all when none is named."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    local: Annotated[
        Path | None,
        typer.Option(
            "--local", metavar="DIR", help="Only fill the spool DIR; no resolver is used."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Fetch sources, and send every capture to the resolver while that goes on.

    What was interrupted is resumed. With --local nothing is sent: `push DIR` does that later.
    """
    settings = load(config)
    if local is None and settings.resolver is None:
        raise SettingsUnusable(f"{config}: resolver: give its address, or run with --local DIR")
    tally = Tally()
    with opened(Spool(local or settings.spool)) as spool, showing(json) as watch:
        result = asyncio.run(
            _run(settings, spool, tuple(sources or ()), local, _both(tally, watch))
        )
    _conclude(result, tally, json)


async def _run(
    settings: CollectorSettings,
    spool: Spool,
    names: tuple[str, ...],
    local: Path | None,
    watch: Watch,
) -> RunResult:
    jobs, limits = settings.jobs(plugins.load(), names), settings.limits()
    if local is not None or settings.resolver is None:
        return await run_local(jobs, spool, limits, watch)
    return await run_sending(jobs, spool, limits, settings.resolver.to_address(), watch)


def _both(first: Watch, second: Watch) -> Watch:
    def told(event: Event) -> None:
        first(event)
        second(event)

    return told


def _conclude(result: RunResult, tally: Tally, json: bool) -> None:
    rows = [summary_row(report, tally.submitted[report.source_id]) for report in result.sources]
    print_table("Run", SUMMARY, rows, json)
    _exit_if_denied(result.drained)
    if result.refused is not None:
        refused(result.refused)
    if any(report.stopped for report in result.sources):
        raise typer.Exit(INTERRUPTED)
    if not result.is_clean:
        raise typer.Exit(FAILED)


@app.command("push", epilog=EPILOG)
@command
def push_(
    folder: Folder,
    config: Config = DEFAULT_CONFIG,
    json: JsonOption = False,
) -> None:
    """Send what the spool DIR holds to the resolver; a second push changes nothing."""
    settings = load(config)
    if settings.resolver is None:
        raise SettingsUnusable(f"{config}: resolver: give its address")
    with opened(Spool.existing(folder)) as spool, showing(json) as watch:
        before = sum(spool.ledger.states().values())
        drained = asyncio.run(push(spool, settings.resolver.to_address(), watch))
    row = (str(folder), before, drained.submitted, drained.refused)
    print_table("Push", ("spool", "captures", "submitted", "refused"), [row], json)
    _exit_if_denied(drained)
    if drained.refused:
        raise typer.Exit(FAILED)


def _exit_if_denied(drained: Drained) -> None:
    for error in drained.denied.values():
        typer.echo(describe(error), err=True)
    if drained.denied:
        raise typer.Exit(NOT_AUTHORISED)


@app.command()
def example() -> None:
    """Print a commented example of the settings file: `prw collect example > sources.toml`."""
    typer.echo(files(__package__).joinpath("sources.example.toml").read_text("utf-8"), nl=False)
