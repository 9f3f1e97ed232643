"""How a run is shown: live on a terminal (sources, rates, the queue, slow hosts), one JSON object a line elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from prw_sdk.report import Event, EventKind, SourceReport, Watch
from prw_sdk.spool.model import Outcome

SUMMARY = (
    *("source", "planned", "fetched", "records", "kept", "held", "submitted", "skipped"),
    *(outcome.value for outcome in Outcome),
    "ended",
)


def as_line(event: Event) -> str:
    """An event as one JSON object."""
    values: dict[str, object] = {"event": event.kind.value}
    optional = {
        "source": event.source_id or None,
        "item": event.native_id,
        "outcome": event.outcome and event.outcome.value,
        "code": event.code,
        "error": event.error,
        "count": event.count or None,
        "kept": event.kept or None,
        "host": event.host if event.kind is EventKind.PAUSED else None,
        "seconds": event.seconds if event.kind is EventKind.PAUSED else None,
    }
    values |= {name: value for name, value in optional.items() if value is not None}
    return json.dumps(values, ensure_ascii=False)


class Tally:
    """Counts what the resolver answered, source by source, for the summary."""

    def __init__(self) -> None:
        self.submitted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        """Take note of one event."""
        self.submitted[event.source_id] += event.kind is EventKind.SUBMITTED
        self.refused[event.source_id] += event.kind is EventKind.REFUSED


_WINDOW = 10.0
"""Seconds over which a rate is taken."""


@dataclass(slots=True)
class _Host:
    asked: int = 0
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        return self.seconds / self.asked


class Figures:
    """How fast a run goes, what waits, and which hosts hold it up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moments: dict[str, deque[float]] = {"settled": deque(), "submitted": deque()}
        self._hosts: dict[str, _Host] = {}
        self._planned = self._settled = 0
        self._kept = self._sent = 0
        self._sends = False

    def __call__(self, event: Event) -> None:
        """Take note of one event."""
        if event.kind is EventKind.PLANNED:
            self._planned += event.count
        elif event.kind in (EventKind.SETTLED, EventKind.SKIPPED):
            self._settled += 1
            self._kept += event.kept
            self._moments["settled"].append(self._clock())
            if event.host is not None and event.kind is EventKind.SETTLED:
                host = self._hosts.setdefault(event.host, _Host())
                host.asked += 1
                host.seconds += event.seconds
        elif event.kind in (EventKind.SUBMITTED, EventKind.REFUSED):
            self._sends = True
            self._sent += 1
            self._moments["submitted"].append(self._clock())

    def rate(self, name: str) -> float:
        """How many were ``settled`` or ``submitted`` a second lately."""
        moments, now = self._moments[name], self._clock()
        while moments and moments[0] < now - _WINDOW:
            moments.popleft()
        return len(moments) / _WINDOW

    @property
    def queue(self) -> int:
        """Items that are planned and not settled."""
        return max(self._planned - self._settled, 0)

    @property
    def to_send(self) -> int:
        """Captures of this run that are kept and not submitted."""
        return max(self._kept - self._sent, 0)

    def slowest(self, most: int = 3) -> list[tuple[str, float, int]]:
        """Hosts by their mean time for an item, the slowest first: name, seconds, items."""
        ranked = sorted(self._hosts.items(), key=lambda one: -one[1].mean)
        return [(name, host.mean, host.asked) for name, host in ranked[:most]]

    def __rich__(self) -> Text:
        """Two lines below the sources; made anew whenever the view is drawn."""
        parts = [f"{self.rate('settled'):.1f} items/s", f"{self.queue} queued"]
        if self._sends:
            parts += [f"{self.rate('submitted'):.1f} sent/s", f"{self.to_send} to send"]
        slow = ", ".join(f"{name} {mean:.1f} s x {asked}" for name, mean, asked in self.slowest())
        return Text("  ".join(parts) + (f"\nslowest: {slow}" if slow else ""), style="dim")


class _Live:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._outcomes: dict[str, Counter[str]] = {}

    def __call__(self, event: Event) -> None:
        if event.kind is EventKind.LEFT_OUT:
            self._progress.console.print(f"left out: {event.error}", markup=False)
            return
        task = self._task(event.source_id)
        if event.kind is EventKind.PLANNED:
            known = self._progress.tasks[task].total or 0
            self._progress.update(task, total=known + event.count)
        elif event.kind in (EventKind.SETTLED, EventKind.SKIPPED):
            self._settled(task, event)
        elif event.kind is EventKind.SUBMITTED:
            self._note(task, event, "submitted")
        elif event.kind is EventKind.WAITING:
            self._progress.update(task, said="another run has its turn; waiting")
        elif event.kind in _SAID:
            said = f"{event.source_id}: {event.code}: {event.error}"
            self._progress.console.print(said, markup=False)

    def _task(self, source_id: str) -> TaskID:
        if source_id not in self._tasks:
            self._tasks[source_id] = self._progress.add_task(source_id, total=None, said="planning")
            self._outcomes[source_id] = Counter()
        return self._tasks[source_id]

    def _settled(self, task: TaskID, event: Event) -> None:
        self._progress.advance(task)
        self._note(task, event, event.outcome or "")

    def _note(self, task: TaskID, event: Event, word: str) -> None:
        counts = self._outcomes[event.source_id]
        counts[word] += 1
        said = "  ".join(f"{name} {n}" for name, n in sorted(counts.items()))
        self._progress.update(task, said=said)


_SAID = frozenset(
    {EventKind.FAILED, EventKind.REFUSED, EventKind.CHANGED, EventKind.BREACHED, EventKind.PAUSED}
)
"""What is told in a line of its own."""


@contextmanager
def showing(as_json: bool) -> Iterator[Watch]:
    """Show a run on standard error while it goes on; standard output is left to the summary."""
    if as_json or not sys.stderr.isatty():
        yield lambda event: typer.echo(as_line(event), err=True)
        return
    console = Console(stderr=True, highlight=False)
    with live(console) as watch:
        yield watch


@contextmanager
def live(console: Console) -> Iterator[Watch]:
    """A line for each source, and below them rates, the queue and the slowest hosts."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[said]}", markup=False),
    )
    progress, figures = Progress(*columns, console=console), Figures()
    view = _Live(progress)

    def told(event: Event) -> None:
        figures(event)
        view(event)

    with Live(Group(progress, figures), console=console, refresh_per_second=4):
        yield told


def summary_row(report: SourceReport, submitted: int) -> tuple[object, ...]:
    """The row of one source in the summary."""
    outcomes = tuple(report.outcomes.get(outcome, 0) for outcome in Outcome)
    found = (report.planned, report.fetched, report.records)
    counts = (*found, report.kept, report.held, submitted, report.skipped)
    return (report.source_id, *counts, *outcomes, ended(report))


def ended(report: SourceReport) -> str:
    """How a source's run ended, in a few words."""
    if report.failure is not None:
        return f"{report.failure.code}: {report.failure.message}"
    if report.stopped:
        return "stopped; run again to resume"
    if report.joined:
        return "done by another run"
    return "resumed and done" if report.resumed else "done"


def told(
    columns: Sequence[str], rows: Sequence[Sequence[object]], always: Collection[str]
) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """The columns that tell a person something: those named, and those that are not 0 everywhere."""
    kept = [
        at for at, name in enumerate(columns) if name in always or any(row[at] != 0 for row in rows)
    ]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]
