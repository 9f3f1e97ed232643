"""How the demo shows what goes on: live bars on a terminal, lines elsewhere; always on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

LINE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Counts:
    """How far the walk has come. `planned` and `settled` targets are of this run, the others of everything so far."""

    planned: int = 0
    settled: int = 0
    kept: int = 0
    submitted: int = 0
    resolved: int = 0
    accepted: int = 0
    in_review: int = 0
    public_items: int = 0
    positions: int = 0


class View(Protocol):
    """Shows a run."""

    def step(self, text: str) -> None:
        """Something begins."""
        ...

    def counts(self, counts: Counts) -> None:
        """The walk has come so far."""
        ...

    def close(self) -> None:
        """Nothing more follows of the counts."""
        ...


@contextmanager
def showing(as_json: bool) -> Iterator[View]:
    """The view that fits: one JSON object a line with `as_json`, bars on a terminal, else plain lines."""
    live = sys.stderr.isatty() and not as_json
    view: View = Bars() if live else Lines(as_json)
    try:
        yield view
    finally:
        view.close()


class Lines:
    """A line for each step, and one a second at most for counts that have changed."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._began = time.monotonic()
        self._told = Counts()
        self._pending: Counts | None = None
        self._last = 0.0

    def step(self, text: str) -> None:
        """Something begins."""
        self.close()
        self._write({"step": text}, text)

    def counts(self, counts: Counts) -> None:
        """The walk has come so far."""
        self._pending = counts if counts != self._told else None
        if time.monotonic() - self._last >= LINE_SECONDS:
            self.close()

    def close(self) -> None:
        """Tell counts that are not told yet."""
        counts, self._pending = self._pending, None
        if counts is None:
            return
        self._told, self._last = counts, time.monotonic()
        values = asdict(counts)
        self._write(
            values, ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in values.items())
        )

    def _write(self, values: dict[str, object], text: str) -> None:
        seconds = round(time.monotonic() - self._began, 1)
        line = json.dumps({"seconds": seconds, **values}) if self._as_json else text
        stamp = "" if self._as_json else f"[{seconds:5.1f} s] "
        sys.stderr.write(f"{stamp}{line}\n")
        sys.stderr.flush()


class Bars:
    """One bar for each stage of the walk, each against the stage before it."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def step(self, text: str) -> None:
        """Something begins."""
        self._console.print(f"[bold]·[/] {text}")

    def counts(self, counts: Counts) -> None:
        """The walk has come so far."""
        if self._progress is None:
            self._open()
        stages = {
            "settled": (counts.settled, counts.planned),
            "kept": (counts.kept, counts.kept),
            "submitted": (counts.submitted, counts.kept),
            "resolved": (counts.resolved, counts.submitted),
            "public items": (counts.public_items, counts.public_items),
            "positions": (counts.positions, counts.positions),
        }
        said = {"resolved": f"accepted {counts.accepted}, in review {counts.in_review}"}
        for name, (done, total) in stages.items():
            self._show(name, done, total, said.get(name, ""))

    def close(self) -> None:
        """Leave the bars as they stand."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _open(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=30),
            TextColumn("{task.completed:>5}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[said]}"),
            console=self._console,
        )
        self._tasks = {}
        self._progress.start()

    def _show(self, name: str, done: int, total: int, said: str) -> None:
        if self._progress is None:
            return
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=None, said="")
        self._progress.update(self._tasks[name], completed=done, total=max(total, 1), said=said)
