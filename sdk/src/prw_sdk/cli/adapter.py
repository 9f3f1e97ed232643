"""The commands of ``prw adapter``: from a new adapter to one that is known to read what it read before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prw_base.cli import FAILED
from prw_base.options import JsonOption
from prw_base.tables import print_json, print_table
from prw_sdk.cli.adapter_spool import coverage, diff
from prw_sdk.cli.adapter_subject import Unusable, guarded, installed, subject_of
from prw_sdk.cli.adapter_try import record, try_
from prw_sdk.operate.scaffold import CannotScaffold, scaffold
from prw_sdk.testing.checking import COLUMNS, Checked, NoPytest, check_all

EPILOG = (
    "Exit status: 0 done; 1 done, and something is not as it should be (a check failed, a page is no record, a claim "
    "changed, a name is not declared); 2 wrong usage, adapter, fixtures or spool; 3 the source gave no page now."
)

app = typer.Typer(
    help="Write an adapter: scaffold it, record its fixtures, check it, and hold it against what was read before.",
    epilog=EPILOG,
    no_args_is_help=True,
)


@app.command(epilog=EPILOG)
@guarded
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lower-case words with hyphens: lumen-web.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="Where to write it (default: ./NAME)."),
    ] = None,
) -> None:
    """Scaffold the distribution of a new adapter; `prw adapter check` in it then says what is left to do."""
    where = folder or Path(name)
    try:
        written = scaffold(name, where)
    except CannotScaffold as refused:
        raise Unusable(str(refused)) from refused
    for path in written:
        typer.echo(str(path))
    typer.echo(f"Next: cd {where} && prw adapter check")


@app.command(epilog=EPILOG)
@guarded
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Adapters; that of this folder's project when none is named."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every installed adapter.")] = False,
    fixtures: Annotated[
        Path | None,
        typer.Option(
            "--fixtures", metavar="DIR", help="Fixtures of the one adapter that is named."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run the conformance suite over recorded fixtures, with the network blocked, and say what is left to do.

    A fixture that was never looked at gets its expected.json written, and fails until it is looked at and run again.
    """
    wanted: list[str | None] = [*(installed() if every else names or [])]
    if fixtures is not None and len(wanted) > 1:
        raise Unusable("--fixtures: name one adapter, since it says where the fixtures of one are")
    try:
        subjects = [subject_of(name, fixtures) for name in wanted or [None]]
        checked = check_all(subjects, Path.cwd())
    except NoPytest as missing:
        raise Unusable(str(missing)) from missing
    _show(checked, json)
    if not all(one.is_fine for one in checked):
        raise typer.Exit(FAILED)


def _show(checked: list[Checked], json: bool) -> None:
    if json:
        print_json([one.as_json() for one in checked])
        return
    print_table("Conformance", COLUMNS, [row for one in checked for row in one.rows()])
    for one in checked:
        if one.is_fine:
            typer.echo(f"{one.name}: all {one.count('passed')} checks passed")
        else:
            typer.echo(f"\n{one.told()}")


app.command("try", epilog=EPILOG)(try_)
app.command("record", epilog=EPILOG)(record)
app.command("diff", epilog=EPILOG)(diff)
app.command("coverage", epilog=EPILOG)(coverage)
