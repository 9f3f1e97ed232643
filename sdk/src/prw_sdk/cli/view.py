"""How a run is shown: a live line a source on a terminal, one JSON object a line elsewhere."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from prw_sdk.report import Event, EventKind, SourceReport, Watch
from prw_sdk.spool.model import Outcome

SUMMARY = (
    *("source", "planned", "fetched", "kept", "submitted", "skipped"),
    *(outcome.value for outcome in Outcome),
    "ended",
)


def as_line(event: Event) -> str:
    """An event as one JSON object."""
    values: dict[str, object] = {"event": event.kind.value, "source": event.source_id}
    optional = {
        "item": event.native_id,
        "outcome": event.outcome and event.outcome.value,
        "code": event.code,
        "error": event.error,
        "count": event.count or None,
        "kept": event.kept or None,
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


class _Live:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._outcomes: dict[str, Counter[str]] = {}

    def __call__(self, event: Event) -> None:
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
        elif event.kind in (EventKind.FAILED, EventKind.REFUSED):
            self._progress.console.print(f"{event.source_id}: {event.code}: {event.error}")

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


@contextmanager
def showing(as_json: bool) -> Iterator[Watch]:
    """Show a run on standard error while it goes on; standard output is left to the summary."""
    if as_json or not sys.stderr.isatty():
        yield lambda event: typer.echo(as_line(event), err=True)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as progress:
        yield _Live(progress)


def summary_row(report: SourceReport, submitted: int) -> tuple[object, ...]:
    """The row of one source in the summary."""
    outcomes = tuple(report.outcomes.get(outcome, 0) for outcome in Outcome)
    counts = (report.planned, report.fetched, report.kept, submitted, report.skipped)
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
