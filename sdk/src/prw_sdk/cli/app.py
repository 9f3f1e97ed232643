"""The commands of ``prw collect``."""

from __future__ import annotations

import asyncio
import json as jsonlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec

import typer

from prw.errors import PrwError
from prw_base import logs
from prw_base.cli import FAILED, INTERRUPTED, NOT_AUTHORISED, USAGE, describe, exit_status
from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_sdk import plugins
from prw_sdk.cli import records as reading
from prw_sdk.cli.run import RunResult, ask_receipts, push, run_local, run_sending
from prw_sdk.cli.settings import CollectorSettings, SettingsUnusable, load
from prw_sdk.cli.status import COLUMNS, look
from prw_sdk.cli.view import SUMMARY, Tally, showing, summary_row
from prw_sdk.report import Event, Watch
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.uplink import Drained

P = ParamSpec("P")

_EPILOG = (
    "Exit status: 0 done; 1 done, but something was put off, set aside or refused (see `status`); "
    "2 wrong usage, settings or spool; 3 the resolver is not available, captures wait in the spool; "
    "4 the resolver denies this collector, or a source of it; 130 interrupted, run again to resume."
)

app = typer.Typer(
    help="Fetch sources into a durable spool, and send what it holds to a resolver.",
    epilog=_EPILOG,
    no_args_is_help=True,
)

Config = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        envvar="PRW_COLLECT_CONFIG",
        help="The TOML file that names sources, contact, spool and resolver.",
        show_default=True,
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The spool's folder.")]
OneSource = Annotated[str | None, typer.Option("--source", help="Only this source.")]

DEFAULT_CONFIG = Path("sources.toml")


def _fail(message: str, status: int) -> NoReturn:
    typer.echo(f"prw: {message}", err=True)
    raise typer.Exit(status)


def _command(call: Callable[P, None]) -> Callable[P, None]:
    """Set up logs, and turn what can be mended from outside into one line and an exit status."""

    @wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        logs.configure(json=not sys.stderr.isatty(), level=logging.WARNING)
        try:
            call(*args, **kwargs)
        except (SettingsUnusable, SpoolUnusable) as unusable:
            _fail(str(unusable), USAGE)
        except PrwError as error:
            typer.echo(describe(error), err=True)
            raise typer.Exit(exit_status(error)) from error

    return guarded


@contextmanager
def _opened(spool: Spool) -> Iterator[Spool]:
    try:
        yield spool
    finally:
        spool.close()


@app.command(epilog=_EPILOG)
@_command
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
    with _opened(Spool(local or settings.spool)) as spool, showing(json) as watch:
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
        typer.echo(describe(result.refused), err=True)
        raise typer.Exit(exit_status(result.refused))
    if any(report.stopped for report in result.sources):
        raise typer.Exit(INTERRUPTED)
    if not result.is_clean:
        raise typer.Exit(FAILED)


@app.command("push", epilog=_EPILOG)
@_command
def push_(
    folder: Folder,
    config: Config = DEFAULT_CONFIG,
    json: JsonOption = False,
) -> None:
    """Send what the spool DIR holds to the resolver; a second push changes nothing."""
    settings = load(config)
    if settings.resolver is None:
        raise SettingsUnusable(f"{config}: resolver: give its address")
    with _opened(Spool.existing(folder)) as spool, showing(json) as watch:
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
@_command
def records(folder: Folder, source: OneSource = None, json: JsonOption = False) -> None:
    """Read the captures of the spool DIR with the installed adapters, and print their records.

    With --json each line is one record with all its claims and where each of them stands.
    """
    rows: list[tuple[object, ...]] = []
    failed = False
    with _opened(Spool.existing(folder)) as spool:
        for one in reading.read_spool(spool, plugins.load(), source):
            failed = failed or one.failed
            if json:
                typer.echo(jsonlib.dumps(one.line(), ensure_ascii=False))
            else:
                rows.append(one.row())
    if not json:
        print_table("Records", reading.COLUMNS, rows)
    if failed:
        raise typer.Exit(FAILED)


@app.command()
@_command
def status(
    folder: Folder,
    config: Config = DEFAULT_CONFIG,
    receipts: Annotated[
        bool,
        typer.Option(
            "--receipts", help="Ask the resolver what became of what was sent (needs --config)."
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every kept byte, to find damaged files.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what became of every item of the spool DIR, and how far its captures have come.

    Captures whose bytes are missing or cut short are counted as damaged, and end the command with status 1.
    """
    with _opened(Spool.existing(folder)) as spool:
        if receipts:
            _ask_receipts(load(config), config, spool)
        standing = look(spool, verify)
    print_table("Spool", COLUMNS, standing.rows(), json)
    if not json:
        standing.print_troubles()
    if standing.damages:
        raise typer.Exit(FAILED)


def _ask_receipts(settings: CollectorSettings, config: Path, spool: Spool) -> None:
    if settings.resolver is None:
        raise SettingsUnusable(f"{config}: resolver: give its address")
    asyncio.run(ask_receipts(spool, settings.resolver.to_address()))


@app.command()
@_command
def retry(
    folder: Folder,
    source: OneSource = None,
    item: Annotated[str | None, typer.Option("--item", help="Only this item.")] = None,
    json: JsonOption = False,
) -> None:
    """Give items that were put off or set aside, and captures that were refused, another chance.

    The next `run` fetches the items again, the next `run` or `push` sends the captures.
    """
    with _opened(Spool.existing(folder)) as spool:
        revived = spool.ledger.revive(source, item, datetime.now(UTC))
    print_table("Retry", ("spool", "revived"), [(str(folder), revived)], json)


@app.command()
def example() -> None:
    """Print a commented example of the settings file: `prw collect example > sources.toml`."""
    typer.echo(files(__package__).joinpath("sources.example.toml").read_text("utf-8"), nl=False)
