"""The commands of ``prw collect``."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from prw_base.cli import FAILED, INTERRUPTED, NOT_AUTHORISED, describe, exit_status
from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_sdk import plugins
from prw_sdk.cli import operating, view
from prw_sdk.cli.options import (
    DEFAULT_CONFIG,
    EPILOG,
    Config,
    Folder,
    command,
    opened,
    refused,
)
from prw_sdk.cli.pace import Errand, interval
from prw_sdk.cli.run import RunResult, push
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.cli.settings import load
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
    once: Annotated[
        bool, typer.Option("--once", help="One run, as for a scheduler; this is the default.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="INTERVAL", help="Run again and again: 90s, 15m, 2h or 1d apart."
        ),
    ] = None,
    ephemeral: Annotated[
        bool,
        typer.Option("--ephemeral", help="Keep nothing between runs: the resolver does."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Fetch sources, and send every capture to the resolver while that goes on.

    What was interrupted is resumed. With --local nothing is sent: `push DIR` does that later. With --every a failed run
    ends nothing, nor does a token file that is missing for a while; the first Ctrl-C or SIGTERM ends it after what is
    in flight, and a revoked credential does at once. Plugins that cannot be loaded are told and left out.
    """
    if once and every is not None:
        raise SettingsUnusable("--once, --every: give one of them")
    if ephemeral and local is not None:
        raise SettingsUnusable("--ephemeral, --local: what keeps nothing has no folder; give one")
    settings = load(config)
    if local is None and settings.resolver is None:
        raise SettingsUnusable(f"{config}: resolver: give its address, or run with --local DIR")
    errand = Errand(
        settings,
        tuple(sources or ()),
        local=local,
        every=None if every is None else _interval(every),
        ephemeral=local is None and (ephemeral or not settings.keep),
    )
    _conclude(_told(errand, json))


def _told(errand: Errand, json: bool) -> RunResult:
    """Run it to its end, while it is shown and told to the plugins that watch."""
    tally = Tally()
    with showing(json) as watch:
        observers = plugins.RunObservers()
        result = asyncio.run(
            errand.go(_each(tally, watch, observers), lambda one: _show(one, tally, json))
        )
    for problem in observers.problems:
        typer.echo(f"prw: {problem}", err=True)
    return result


def _interval(text: str) -> timedelta:
    try:
        return interval(text)
    except ValueError as wrong:
        raise SettingsUnusable(str(wrong)) from wrong


def _each(*watches: Watch) -> Watch:
    def told(event: Event) -> None:
        for watch in watches:
            watch(event)

    return told


def _show(result: RunResult, tally: Tally, json: bool) -> None:
    rows = [summary_row(report, tally.submitted[report.source_id]) for report in result.sources]
    always = ("source", "planned", "fetched", "kept", "stored", "ended")
    columns, shown = (SUMMARY, rows) if json else view.told(SUMMARY, rows, always)
    print_table("Run", columns, shown, json)
    # whoever follows runs at intervals through a pipe sees each as it ends
    sys.stdout.flush()
    tally.submitted.clear()
    if result.refused is not None and not result.is_revoked:
        typer.echo(describe(result.refused), err=True)


def _conclude(result: RunResult) -> None:
    if result.is_revoked and result.refused is not None:
        refused(result.refused)
    _exit_if_denied(result.drained)
    if result.refused is not None:
        raise typer.Exit(exit_status(result.refused))
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
    with opened(Spool.existing(folder, to_write=True)) as spool, showing(json) as watch:
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
