"""The commands of ``prw collect`` that look at a spool, mend it, and give it to other tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from prw_base.cli import FAILED, USAGE
from prw_base.options import JsonOption
from prw_base.tables import print_json, print_table
from prw_sdk import plugins
from prw_sdk.cli.options import (
    DEFAULT_CONFIG,
    Config,
    Folder,
    OneSource,
    command,
    fail,
    opened,
)
from prw_sdk.cli.pace import Errand
from prw_sdk.cli.run import ask_receipts
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.cli.settings import CollectorSettings, load
from prw_sdk.cli.status import COLUMNS, look
from prw_sdk.cli.view import told
from prw_sdk.fetch.polite import clear_pause
from prw_sdk.operate import doctor as examining
from prw_sdk.operate import items as listing
from prw_sdk.operate import readings, tables, warc, writing
from prw_sdk.operate.readings import Reading
from prw_sdk.operate.tables import Format, FormatUnusable
from prw_sdk.operate.writing import STREAM
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.looking import Wanted
from prw_sdk.spool.model import Outcome

app = typer.Typer()

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write to this file, whole or not at all; `-` is standard output.",
    ),
]


@app.command()
@command
def records(
    folder: Folder,
    source: OneSource = None,
    format: Annotated[
        Format | None, typer.Option("--format", help="Write every record with all its claims.")
    ] = None,
    out: Out = None,
    json: JsonOption = False,
) -> None:
    """Read the captures of the spool DIR with the installed adapters, and print their records.

    With --format (or --json, which is `--format jsonl`) each line is one record with all its claims and where each of
    them stands, written as it is read; `held` marks those of captures that await the judgement of their run.
    Exit status 1 where a capture could not be read.
    """
    wanted = Format.JSONL if json and format is None else format
    if wanted is None and out is not None:
        raise FormatUnusable("--out: say in which --format: jsonl, csv or parquet")
    failures: list[Reading] = []
    with opened(Spool.existing(folder), source) as spool:
        installed = plugins.load()
        for problem in installed.problems:
            typer.echo(f"prw: left out: {problem}", err=True)
        found = _noting(readings.read_spool(spool, installed, source), failures)
        if wanted is None:
            print_table("Records", readings.COLUMNS, [one.row() for one in found])
        else:
            _write(found, wanted, out)
    if failures:
        raise typer.Exit(FAILED)


def _noting(found: Iterator[Reading], failures: list[Reading]) -> Iterator[Reading]:
    for one in found:
        if one.failed and not failures:
            failures.append(one)
        yield one


def _write(found: Iterator[Reading], wanted: Format, out: Path | None) -> None:
    if out in (None, STREAM) and wanted is Format.PARQUET:
        raise FormatUnusable("--format parquet: give a file with --out FILE")
    with writing.opened(out or STREAM, "--out") as file:
        tables.write(found, wanted, file)


@app.command()
@command
def export(
    folder: Folder,
    warc_file: Annotated[
        Path,
        typer.Option(
            "--warc",
            metavar="FILE",
            help="Such as spool.warc.gz, written whole or not at all; `-` is standard output.",
        ),
    ],
    source: OneSource = None,
    json: JsonOption = False,
) -> None:
    """Write the captures of the spool DIR as WARC, the archive format that other tools read.

    The `metadata` record beside each says whether its capture is held: one that awaits the judgement of its run.
    Exit status 1 where captures are left out since their bytes are damaged.
    """
    with opened(Spool.existing(folder), source) as spool:
        done = warc.export(spool, warc_file, source)
    if warc_file == STREAM:
        typer.echo(f"prw: {done.captures} captures, {done.damaged} damaged and left out", err=True)
    else:
        _print_exported(warc_file, done, json)
    if done.damaged:
        raise typer.Exit(FAILED)


def _print_exported(warc_file: Path, done: warc.Exported, json: bool) -> None:
    row = (str(warc_file), done.captures, done.records, done.damaged)
    print_table("Export", ("file", "captures", "records", "damaged"), [row], json)


@app.command()
@command
def items(
    folder: Folder,
    source: OneSource = None,
    outcome: Annotated[
        Outcome | None, typer.Option("--outcome", help="Only items with this outcome.")
    ] = None,
    code: Annotated[
        str | None, typer.Option("--code", help="Only items with this code, such as UPSTREAM_503.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=listing.LONGEST_PAGE, help="Items of a page.")
    ] = 100,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="CURSOR", help="The cursor that the page before printed."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the items of the spool DIR with what became of each, page by page."""
    with opened(Spool.existing(folder), source) as spool:
        page = listing.page(spool, Wanted(source, outcome, code), after, limit)
    rows = [listing.row(item) for item in page.items]
    if json:
        shown = [dict(zip(listing.COLUMNS, row, strict=True)) for row in rows]
        print_json({"items": shown, "after": page.cursor})
        return
    print_table("Items", listing.COLUMNS, rows)
    if page.cursor is not None:
        typer.echo(f"more: --after {page.cursor}", err=True)


@app.command()
@command
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
    with opened(Spool.existing(folder, to_write=receipts)) as spool:
        if receipts:
            _ask_receipts(load(config), config, spool)
        standing = look(spool, verify)
    if json:
        print_table("Spool", COLUMNS, standing.rows(), json)
    else:
        print_table("Spool", *told(COLUMNS, standing.rows(), ("source", "stored", "kept")))
        standing.print_troubles()
    if standing.damages:
        raise typer.Exit(FAILED)


def _ask_receipts(settings: CollectorSettings, config: Path, spool: Spool) -> None:
    if settings.resolver is None:
        raise SettingsUnusable(f"{config}: resolver: give its address")
    asyncio.run(ask_receipts(spool, settings.resolver.to_address()))


@app.command()
@command
def retry(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="The spool's folder; without it, what the resolver keeps."
        ),
    ] = None,
    source: OneSource = None,
    item: Annotated[str | None, typer.Option("--item", help="Only this item.")] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST[:PORT]",
            help="End the pause that this host asked for (Retry-After); may be given again.",
        ),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    json: JsonOption = False,
) -> None:
    """Give items that were put off or set aside, and captures that were held or refused, another chance.

    The next `run` fetches the items again, the next `run` or `push` sends the captures. Receipts that the resolver did
    not let be read are asked for again, and count as revived. Without DIR it is about the items that the resolver keeps
    for a collector that keeps nothing (`run --ephemeral`).

    A host that asked for a pause is asked nothing until that is over, unless it is named with --host; with --host alone
    no item is revived.
    """
    for one in host or ():
        _resume(one)
    if folder is None and host and source is None and item is None:
        return
    if folder is None:
        errand = Errand(load(config), () if source is None else (source,))
        revived, where = asyncio.run(errand.revive(item)), "resolver"
    else:
        with opened(Spool.existing(folder, to_write=True), source) as spool:
            revived, where = spool.ledger.revive(source, item, datetime.now(UTC)), str(folder)
    print_table("Retry", ("spool", "revived"), [(where, revived)], json)


def _resume(named: str) -> None:
    host = named.strip().lower()
    if not host:
        fail("--host: name a host, as `run` told its pause", USAGE)
    left = clear_pause(host)
    said = f"may be asked again; {left:.0f} s of its pause were left" if left else "is not paused"
    typer.echo(f"prw: {host} {said}", err=True)


_FINDINGS = ("trouble", "source", "count", "said", "remedy", "serious", "repaired")


@app.command()
@command
def doctor(
    folder: Folder,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended without losing anything.")
    ] = False,
    stale: Annotated[
        int,
        typer.Option(
            "--stale", metavar="DAYS", min=1, max=36_500, help="Days a checkpoint may stand still."
        ),
    ] = 7,
    json: JsonOption = False,
) -> None:
    """Look for what is not as it should be in the spool DIR, and say what to do about it.

    Ghosts (runs that ended with nothing to show), lost bytes, files that no capture names, runs that settled less than
    they planned, stale checkpoints, poison, runs that were interrupted, captures that are held or refused.
    Exit status 1 where a finding is serious: no next run mends it by itself.
    """
    with opened(Spool.existing(folder, to_write=repair)) as spool:
        age = timedelta(days=stale)
        found = asyncio.run(examining.examine(spool, datetime.now(UTC), stale=age, repair=repair))
    rows = [
        (
            one.trouble.value,
            one.source_id,
            one.count,
            one.said,
            one.remedy,
            one.serious,
            one.repaired,
        )
        for one in found
    ]
    print_table("Findings", _FINDINGS, rows, json)
    if any(one.serious for one in found):
        raise typer.Exit(FAILED)
