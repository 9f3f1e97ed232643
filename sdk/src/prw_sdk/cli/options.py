"""What the commands of ``prw collect`` share: their options, exit statuses, and how failures are told."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec

import typer

from prw.errors import Code, PrwError
from prw_base import logs
from prw_base.cli import NOT_AUTHORISED, USAGE, describe, exit_status
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.cli.texts import no_text
from prw_sdk.fetch.runtime import RuntimeFolderUnusable
from prw_sdk.operate.items import CursorUnusable
from prw_sdk.operate.tables import FormatUnusable
from prw_sdk.operate.writing import TargetUnusable
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.sqlite import SpoolUnusable

P = ParamSpec("P")

EPILOG = (
    "Exit status: 0 done; 1 done, but something was put off, set aside or refused (see `status`); "
    "2 wrong usage, settings or spool; 3 the resolver is not available, captures wait in the spool; "
    "4 the resolver denies this collector, or a source of it, or has revoked its credential; "
    "130 interrupted, run again to resume."
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
OneSource = Annotated[
    str | None, typer.Option("--source", help="Only this source; one that is not there is refused.")
]

DEFAULT_CONFIG = Path("sources.toml")


class SourceUnknown(Exception):
    """The spool has never had a source of that name; the message names those that there are."""


_UNUSABLE = (
    SettingsUnusable,
    SpoolUnusable,
    CursorUnusable,
    FormatUnusable,
    TargetUnusable,
    SourceUnknown,
    RuntimeFolderUnusable,
)
_REVOKED = (
    "The credential of this collector is revoked: it has stopped, and what it kept waits in the spool. Provision it "
    "again (`prw resolver client provision`), put the new token where resolver.token_file says, and run it again."
)


def fail(message: str, status: int) -> NoReturn:
    """End the command with one line and an exit status."""
    typer.echo(f"prw: {message}", err=True)
    raise typer.Exit(status)


def refused(error: PrwError) -> NoReturn:
    """End the command with what the resolver answered, and what the operator is to do."""
    typer.echo(describe(error), err=True)
    if error.code is Code.CREDENTIAL_REVOKED:
        fail(_REVOKED, NOT_AUTHORISED)
    raise typer.Exit(exit_status(error)) from error


def command(call: Callable[P, None]) -> Callable[P, None]:
    """Set up logs, and turn what can be mended from outside into one line and an exit status."""

    @wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        logs.configure(json=not sys.stderr.isatty(), level=logging.WARNING)
        complaint = no_text(kwargs)
        if complaint is not None:
            fail(complaint, USAGE)
        try:
            call(*args, **kwargs)
        except _UNUSABLE as unusable:
            fail(str(unusable), USAGE)
        except PrwError as error:
            refused(error)

    return guarded


@contextmanager
def opened(spool: Spool, source: str | None = None) -> Iterator[Spool]:
    """The spool, which is closed at the end; raises `SourceUnknown` where it has never had the source asked for."""
    try:
        if source is not None:
            _expect(spool, source)
        yield spool
    finally:
        spool.close()


def _expect(spool: Spool, source: str) -> None:
    known = sorted({source_id for _, source_id in spool.looking.sources()})
    if source not in known:
        there = ", ".join(known) or "none"
        raise SourceUnknown(
            f"--source {source}: {spool.folder} has no such source (sources: {there})"
        )
