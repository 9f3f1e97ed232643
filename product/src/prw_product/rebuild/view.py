"""How a rebuild is shown: a bar with an estimate on a terminal, one JSON object a line elsewhere."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from prw.errors import Code, PrwError
from prw_base.server.termination import terminated
from prw_product.rebuild.model import Phase, Progress, Watch

T = TypeVar("T")

_WORDS = {
    Phase.EXPORTING: "waiting for the export",
    Phase.LOADING: "loading rows",
    Phase.FINISHING: "building keys",
    Phase.CATCHING_UP: "catching up",
    Phase.SERVED: "serving",
    Phase.FAILED: "failed",
}


@contextmanager
def shown(as_json: bool) -> Iterator[Watch]:
    """A watch that shows on standard error what it is told."""
    if as_json or not sys.stderr.isatty():
        yield _Lines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        yield _Bar(bars)


async def ending(work: Coroutine[None, None, T]) -> T:
    """What the work gives; at SIGTERM or Ctrl-C it is ended, and cleans up. Raises UNAVAILABLE then."""
    stop, task = terminated(), asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        return task.result()
    raise PrwError(Code.UNAVAILABLE, "interrupted: nothing has changed, run it again")


class _Lines:
    """A line whenever the phase or the whole percentage is another one."""

    def __init__(self) -> None:
        self._last: tuple[Phase, int] | None = None

    def __call__(self, progress: Progress) -> None:
        at = (progress.phase, progress.done * 100 // max(1, progress.total))
        if at != self._last:
            self._last = at
            said = {"phase": progress.phase.value, "done": progress.done, "total": progress.total}
            typer.echo(json.dumps(said), err=True)


class _Bar:
    """One bar a phase."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._phase: Phase | None = None

    def __call__(self, progress: Progress) -> None:
        if progress.phase is not self._phase:
            self._phase = progress.phase
            self._task = self._bars.add_task(_WORDS[progress.phase], total=None)
        self._bars.update(self._task, completed=progress.done, total=progress.total or None)
