"""``prw demo``: the whole walk on the example street."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from prw_base.cli import FAILED, INTERRUPTED
from prw_examples.demo.children import DemoFailed
from prw_examples.demo.layout import isolate, occupied
from prw_examples.demo.run import Options, run

app = typer.Typer(
    name="demo",
    help="Collect an example shopping street, resolve it and serve the catalogue, all on this machine.",
    epilog=(
        "Exit status: 0 done, or stopped while serving; 1 a process failed, something is stuck, or the check found a "
        "fault; 130 interrupted before there was a result."
    ),
    invoke_without_command=True,
    subcommand_metavar="",
)


@app.callback()
def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End after the table, rather than serve until Ctrl-C.")
    ] = False,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print the figures as one line of JSON, in place of tables."),
    ] = False,
    state: Annotated[
        Path,
        typer.Option(
            "--state",
            metavar="FOLDER",
            help="Where PostgreSQL, evidence, spool, tokens and logs are kept.",
        ),
    ] = Path(".prw"),
    keep: Annotated[
        bool,
        typer.Option("--keep/--fresh", help="Go on with what the folder holds, or start empty."),
    ] = True,
) -> None:
    """Collect an example shopping street, resolve it and serve the catalogue, all on this machine.

    Starts PostgreSQL in the folder, the resolver, the product service and a street of three shops, each as a process
    on a free loopback port. Then a collector fetches the shops. When everything is at rest it prints what happened,
    checked against both databases and the stored pages, and where to look; and serves until Ctrl-C. Nothing outside
    the folder is changed.
    """
    isolate()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        with occupied(state, fresh=not keep) as layout:
            figures = run(layout, Options(once, json))
    except DemoFailed as failed:
        typer.echo(f"prw: the demo failed: {failed}", err=True)
        raise typer.Exit(FAILED) from failed
    except KeyboardInterrupt:
        figures = None
    if figures is None:
        raise typer.Exit(INTERRUPTED)
    if figures.faults:
        found = ", ".join(f"{name} {number}" for name, number in figures.faults.items())
        typer.echo(f"prw: the check found faults: {found}", err=True)
        raise typer.Exit(FAILED)
