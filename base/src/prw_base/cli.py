"""The ``prw`` command: groups that the installed distributions bring by entry point.

Exit status: 0 done; 1 refused or failed; 2 wrong usage; 3 not available now, the same command may
be tried again; 4 not authorised; 70 a defect of this program; 130 interrupted.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO, cast

import stamina.instrumentation
import typer
from pydantic import ValidationError

from prw.errors import Code, PrwError
from prw_base import logs
from prw_base.settings import explain

if TYPE_CHECKING:
    from typing_extensions import Buffer

STANDARD_OUTPUT = "standard output"
"""Stands where a file's name stands in an error."""

GROUP = "prw.commands"
"""Entry points here name a command group and give a ``typer.Typer``."""

FAILED, USAGE, TRY_AGAIN, NOT_AUTHORISED, DEFECT, INTERRUPTED = 1, 2, 3, 4, 70, 130

_EPILOG = (
    "Exit status: 0 done; 1 refused or failed; 2 wrong usage; 3 not available now, try again; "
    "4 not authorised; 70 a defect; 130 interrupted."
)


def build(groups: Iterable[EntryPoint]) -> typer.Typer:
    """The command with every group that loads; each one that does not is told in one line."""
    app = typer.Typer(
        name="prw",
        help="Collect sources, resolve what they offer, and publish a traceable catalogue.",
        epilog=_EPILOG,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for group in sorted(groups, key=lambda g: g.name):
        _add(app, group)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"prw {_version()}")
        raise typer.Exit


def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_show_version
        ),
    ] = False,
) -> None:
    """Collect sources, resolve what they offer, and publish a traceable catalogue."""


def _add(app: typer.Typer, group: EntryPoint) -> None:
    # A group is foreign code: whatever its import raises must not take the others down.
    try:
        loaded = group.load()
        if not isinstance(loaded, typer.Typer):
            raise TypeError(f"{group.value} is no typer.Typer")
        app.add_typer(loaded, name=group.name)
    except Exception as broken:  # noqa: BLE001  it is told below, and the command goes on
        reason = str(broken).splitlines()[0] if str(broken) else ""
        _complain(f"prw: group {group.name!r} left out: {type(broken).__name__}: {reason}")


def _version() -> str:
    try:
        return version("prw-base")
    except PackageNotFoundError:
        return "unknown"


def wanted(groups: Sequence[EntryPoint], arguments: Sequence[str]) -> list[EntryPoint]:
    """Only the group that ``arguments`` name, so that a command does not import the others."""
    first = next((a for a in arguments if not a.startswith("-")), None)
    named = [group for group in groups if group.name == first]
    return named or list(groups)


def exit_status(error: PrwError) -> int:
    """The exit status that tells ``error`` to a script."""
    if error.retryable:
        return TRY_AGAIN
    if error.entry.http in (401, 403):
        return NOT_AUTHORISED
    return DEFECT if error.code is Code.INTERNAL else FAILED


def describe(error: PrwError) -> str:
    """``error`` as one line: code, field, what happened, what to do."""
    where = f" {error.field}:" if error.field else ""
    message = " ".join(error.message.split()).rstrip(".")
    return f"prw: {error.code}:{where} {message}. {error.entry.remedy}"


def _complain(line: str) -> None:
    print(line, file=sys.stderr)


def main() -> None:
    """Run ``prw`` with the arguments of this process.

    Logs go to standard error: for people, or with ``PRW_LOG_JSON=1`` one JSON object a line, from
    the level ``PRW_LOG_LEVEL`` (info unless said otherwise) up.
    """
    level = os.environ.get("PRW_LOG_LEVEL", "info").upper()
    numbers = logging.getLevelNamesMapping()
    logs.configure(os.environ.get("PRW_LOG_JSON") == "1", numbers.get(level, logging.INFO))
    # A command's own line tells what failed in the end; each attempt before it is no news.
    stamina.instrumentation.set_on_retry_hooks(())
    groups = wanted(list(entry_points(group=GROUP)), sys.argv[1:])
    sys.stdout = _telling(sys.stdout)
    sys.exit(run(build(groups)))


def run(command: Callable[[], object]) -> int:
    """Run ``command`` to its end and give the exit status, after one line on what went wrong.

    What the user's machine or settings are at fault for is told so, with the file or the setting;
    anything else is a defect of ours and keeps its traceback.
    """
    try:
        _to_the_end(command)
    except PrwError as error:
        _complain(describe(error))
        return exit_status(error)
    except ValidationError as error:
        _complain(f"prw: settings: {explain(error)}")
        return USAGE
    except BrokenPipeError:
        # whoever read our output has enough of it
        _drop_output()
        return FAILED
    except OSError as error:
        if error.filename is None:
            raise
        if error.filename == STANDARD_OUTPUT:
            _drop_output()
        _complain(f"prw: {error.filename}: {error.strerror}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _to_the_end(command: Callable[[], object]) -> None:
    """Run ``command``, and write out what it printed while a failure of that can still be told."""
    try:
        command()
    finally:
        sys.stdout.flush()


class _Output(io.FileIO):
    """Standard output, whose name is in the error where it can take no more, as a file's is; not in a broken pipe."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            error.filename = STANDARD_OUTPUT
            raise


def _telling(out: TextIO) -> TextIO:
    """The same output, buffered as it was, whose errors tell what it is."""
    if not isinstance(out, io.TextIOWrapper):
        return out
    out.flush()
    unbuffered = isinstance(out.buffer, io.RawIOBase)
    if not unbuffered and not isinstance(out.buffer, io.BufferedWriter):
        return out  # no file of the system's
    raw = _Output(out.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        cast("BinaryIO", raw) if unbuffered else io.BufferedWriter(raw),
        encoding=out.encoding,
        errors=out.errors,
        line_buffering=out.line_buffering,
        write_through=out.write_through,
    )


def _drop_output() -> None:
    """Let what cannot be written go, so that the interpreter does not complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
