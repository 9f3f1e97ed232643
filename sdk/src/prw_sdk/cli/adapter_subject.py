"""Which adapter a command of ``prw adapter`` is about: that of the project in the current folder, or a named one."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec

import typer
from pydantic import ValidationError

from prw_base import logs
from prw_base.cli import USAGE
from prw_base.settings import explain
from prw_sdk.adapter import Adapter, Source
from prw_sdk.cli.texts import no_text
from prw_sdk.operate.reread import Origin
from prw_sdk.plugins import GROUP
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.testing.fixtures import BadFixture
from prw_sdk.testing.subject import NoSuchAdapter, Subject, find, project_points

P = ParamSpec("P")

AdapterOption = Annotated[
    str | None,
    typer.Option(
        "--adapter", metavar="NAME", help="The adapter; that of this folder's project by default."
    ),
]


class Unusable(Exception):
    """What was asked for cannot be done; the message says what to write instead. Ends with status 2."""


def fail(message: str, status: int = USAGE) -> NoReturn:
    """End the command with one line on standard error."""
    typer.echo(f"prw: {message}", err=True)
    raise typer.Exit(status)


def guarded(call: Callable[P, None]) -> Callable[P, None]:
    """Set up logs, and turn what can be mended from outside into one line and status 2."""

    @wraps(call)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        logs.configure(json=not sys.stderr.isatty(), level=logging.WARNING)
        complaint = no_text(kwargs)
        if complaint is not None:
            fail(complaint)
        try:
            call(*args, **kwargs)
        except (Unusable, NoSuchAdapter, SpoolUnusable, BadFixture) as unusable:
            fail(str(unusable))

    return told


def subject_of(name: str | None, fixtures: Path | None = None) -> Subject:
    """The adapter of that name, or the one of the project in the current folder; raises `Unusable`."""
    folder = Path.cwd()
    if name is not None:
        return find(name, folder, fixtures)
    own = [point.name for point in project_points(folder)]
    if len(own) == 1:
        return find(own[0], folder, fixtures)
    listed = ", ".join(own or installed()) or "none: make one with `prw adapter new NAME`"
    where = "this project brings several adapters" if own else "this folder is no adapter's project"
    raise Unusable(f"{where}: name one ({listed})")


def installed() -> list[str]:
    """The names under which adapters are installed, and that of this folder's project."""
    own = [point.name for point in project_points(Path.cwd())]
    return sorted({*own, *(point.name for point in entry_points(group=GROUP))})


def origin_of(folder: Path) -> Origin:
    """Adapters as they are met in that folder: its project's before what is installed."""
    points = tuple((point.name, point.value) for point in project_points(folder))
    source = folder / "src" if (folder / "src").is_dir() else folder
    return Origin(points, (str(source.resolve()),) if points else ())


def source_of(
    adapter: Adapter, settings: Iterable[str], locale: str, currency: str | None
) -> Source:
    """A source with these ``name=value`` settings; raises `Unusable`."""
    values = dict(map(_pair, settings))
    try:
        return Source("src_fixture", adapter.settings(**values), locale, currency)
    except ValidationError as bad:
        known = ", ".join(adapter.settings.model_fields) or "it has none"
        raise Unusable(
            f"--setting: {explain(bad).removeprefix('file: ')} (settings of {adapter.name}: {known})"
        ) from bad


def _pair(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Unusable(f"--setting {text!r}: write name=value (a value may be JSON)")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
