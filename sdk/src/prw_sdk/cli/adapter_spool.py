"""``prw adapter diff`` and ``coverage``: a whole spool read again with the adapters at hand."""

from __future__ import annotations

import json as jsonlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from prw_base.cli import FAILED
from prw_base.options import JsonOption
from prw_base.tables import print_json, print_table
from prw_sdk.cli.adapter_subject import Unusable, guarded, origin_of
from prw_sdk.operate.coverage import Count, Found, Line, lines, merged
from prw_sdk.operate.diff import CaptureDiff, Compare, Compared, Remember
from prw_sdk.operate.reread import Handed, Origin, ReadersDied, Rereading
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import KeptCapture
from prw_sdk.spool.readings import KeptReading

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The spool's folder.")]
OneSource = Annotated[str | None, typer.Option("--source", metavar="ID", help="Only this source.")]
Processes = Annotated[
    int | None,
    typer.Option("--processes", min=1, max=256, help="Processes that read (default: all cores)."),
]

_PAGE = 200


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which captures of which spool are read."""

    spool: Spool
    source: str | None
    processes: int | None

    def captures(self) -> Iterator[KeptCapture]:
        """The captures, oldest first."""
        for kept in self.spool.ledger.captures():
            if self.source in (None, kept.key.source_id):
                yield kept

    def total(self) -> int:
        """How many there are; raises `Unusable` where there are none."""
        states = self.spool.ledger.states()
        total = sum(n for (source, _), n in states.items() if self.source in (None, source))
        if not total:
            known = ", ".join(sorted({source for source, _ in states})) or "none"
            wanted = "" if self.source is None else f" of {self.source!r} (sources: {known})"
            raise Unusable(f"{self.spool.folder} holds no captures{wanted}")
        return total


@contextmanager
def _opened(
    folder: Path, source: str | None, processes: int | None, *, to_write: bool = False
) -> Iterator[_Asked]:
    spool = Spool.existing(folder, to_write=to_write)
    try:
        yield _Asked(spool, source, processes)
    except ReadersDied as died:
        raise Unusable(str(died)) from died
    finally:
        spool.close()


@contextmanager
def _progress(what: str, total: int) -> Iterator[Iterable[None]]:
    """Steps for a bar on standard error, where a terminal is there; one `next` for each capture handed out."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    is_shown = sys.stderr.isatty()
    # drawn from here and not by a thread, since a process with one thread can be forked
    bar = Progress(*columns, console=Console(stderr=True), disable=not is_shown, auto_refresh=False)
    with bar:
        task = bar.add_task(what, total=total)

        def steps() -> Iterator[None]:
            for done in count(1):
                bar.update(task, completed=done, refresh=done % _PAGE == 0 or done == total)
                yield

        yield steps()


@guarded
def diff(
    folder: Folder,
    source: OneSource = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="PROJECT",
            help="Compare with what the adapter in this project folder reads, such as the last release's checkout.",
        ),
    ] = None,
    save: Annotated[
        bool,
        typer.Option(
            "--save", help="Keep this reading in the spool: the next diff compares with it."
        ),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Changed captures to show.")] = 20,
    processes: Processes = None,
    json: JsonOption = False,
) -> None:
    """Read the spool DIR again, and show the claims that were added, changed and removed since it was read before.

    What was read before is what the run read that kept the capture, or a later `--save`. With --json each line is one
    capture with its changes, and the last one the summary. Status 1: something is read otherwise, or not at all.
    """
    with _opened(folder, source, processes, to_write=save) as asked:
        total = asked.total()
        told = _Told(json, limit)
        for compared in _compared(asked, against, total, keep=save):
            told.add(compared)
            if save:
                asked.spool.readings.keep(compared.readings)
    if told.new == total and not save:
        raise Unusable(
            f"nothing is known of what was read of {folder} before: keep the reading of a version that you trust "
            "with --save, or name its project with --against"
        )
    told.conclude()
    if told.how or told.troubles:
        raise typer.Exit(FAILED)


def _compared(asked: _Asked, against: Path | None, total: int, *, keep: bool) -> Iterator[Compared]:
    origin = origin_of(Path.cwd())
    work = Rereading(asked.spool.folder, Compare(keep), origin, asked.processes)
    with _progress("reading", total) as steps:
        handed = _known(asked) if against is None else _read_by(asked, _origin_against(against))
        yield from work.over(one for one, _ in zip(handed, steps, strict=False))


def _origin_against(project: Path) -> Origin:
    origin = origin_of(project)
    if not origin.points:
        raise Unusable(
            f"--against {project}: its pyproject.toml declares no adapter (entry points prw.adapters)"
        )
    return origin


def _known(asked: _Asked) -> Iterator[Handed]:
    captures = asked.captures()
    while page := list(islice(captures, _PAGE)):
        known = asked.spool.readings.of(kept.row for kept in page)
        yield from (_handed(kept, known.get(kept.row)) for kept in page)


def _read_by(asked: _Asked, origin: Origin) -> Iterator[Handed]:
    """Captures with what the adapters of another project read; page by page, in processes of their own."""
    work = Rereading(asked.spool.folder, Remember(), origin, asked.processes, apart=True)
    chunks = work.over(Handed(kept) for kept in asked.captures())
    readings = (one for chunk in chunks for one in chunk)
    following = next(readings, None)
    for kept in asked.captures():
        while following is not None and following.row < kept.row:
            following = next(readings, None)
        mine = following if following is not None and following.row == kept.row else None
        yield _handed(kept, mine)


def _handed(kept: KeptCapture, reading: KeptReading | None) -> Handed:
    if reading is None:
        return Handed(kept)
    return Handed(kept, reading.body, reading.version)


@dataclass
class _Told:
    """Counts what changed, and shows the first captures as they come."""

    json: bool
    limit: int
    same: int = 0
    new: int = 0
    changed: int = 0
    troubles: int = 0
    how: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, compared: Compared) -> None:
        """Count a chunk, and show what is to be shown of it."""
        self.same += compared.same
        self.new += compared.new
        for one in compared.diffs:
            self.troubles += one.code is not None
            self.changed += one.code is None
            self.how.update((change.attribute or "(capture)", change.how) for change in one.changes)
            if self.json:
                typer.echo(jsonlib.dumps(asdict(one), ensure_ascii=False))
            elif self.changed + self.troubles <= self.limit:
                _show(one)

    def conclude(self) -> None:
        """The summary."""
        counts = {
            "same": self.same,
            "changed": self.changed,
            "not_read_before": self.new,
            "not_readable": self.troubles,
        }
        if self.json:
            claims = [{"attribute": a, "how": h, "claims": n} for (a, h), n in self._sorted()]
            print_json({**counts, "claims": claims})
            return
        hidden = self.changed + self.troubles - self.limit
        if hidden > 0:
            typer.echo(f"… and {hidden} more captures (--limit)")
        attributes = sorted({attribute for attribute, _ in self.how})
        kinds = ("added", "changed", "removed", "moved")
        rows = [(one, *(self.how[one, kind] for kind in kinds)) for one in attributes]
        print_table("Claims", ("attribute", *kinds), rows)
        print_table("Captures", tuple(counts), [tuple(counts.values())])

    def _sorted(self) -> Sequence[tuple[tuple[str, str], int]]:
        return sorted(self.how.items())


def _show(one: CaptureDiff) -> None:
    typer.echo(f"{one.source_id} {one.native_id} {one.captured_at}")
    if one.code is not None:
        typer.secho(f"  ! {one.code}: {one.error}", fg="red")
    colours = {"added": "green", "removed": "red", "changed": "yellow", "moved": "cyan"}
    marks = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}
    for change in one.changes:
        values = [repr(value) for value in (change.before, change.now) if value is not None]
        if change.how == "moved":
            values = [*values[:1], "stands elsewhere"]
        what = " ".join(filter(None, (change.record_id, change.attribute))) or "the whole capture"
        arrow = " → " if change.how == "changed" else " "
        typer.secho(f"  {marks[change.how]} {what}: {arrow.join(values)}", fg=colours[change.how])


@guarded
def coverage(
    folder: Folder,
    source: OneSource = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Follow every locator, and count those that lead nowhere."),
    ] = False,
    locators: Annotated[
        bool, typer.Option("--locators", help="Show locators as well, with their numbers left out.")
    ] = False,
    processes: Processes = None,
    json: JsonOption = False,
) -> None:
    """Read the spool DIR again, and show in how many captures each declared field stands, and which never do.

    Status 1: a name is stated that no declaration covers, a locator leads nowhere, or a capture could not be read.
    """
    origin = origin_of(Path.cwd())
    with _opened(folder, source, processes) as asked:
        work = Rereading(folder, Count(verify), origin, processes)
        with _progress("reading", asked.total()) as steps:
            handed = (Handed(kept) for kept, _ in zip(asked.captures(), steps, strict=False))
            found = merged(work.over(handed))
    covered = [_Covered(name, one, origin) for name, one in sorted(found.items())]
    if json:
        print_json([one.as_json() for one in covered])
    else:
        for one in covered:
            one.show(locators=locators or verify)
    if not all(one.is_fine for one in covered):
        raise typer.Exit(FAILED)


class _Covered:
    """The coverage of one adapter; under an empty name what could not be read at all."""

    def __init__(self, name: str, found: Found, origin: Origin) -> None:
        self.name = name
        self.found = found
        self.profile = found.tally.profile()
        self.lines: tuple[Line, ...] = ()
        if name:
            self.lines = lines(origin.plugins().find(name), self.profile)

    @property
    def is_fine(self) -> bool:
        """Whether nothing is to be mended."""
        return not (self.profile.unknown or self.found.troubles or self.found.astray)

    def never(self) -> list[str]:
        """Stored fields that no capture states."""
        return [one.field for one in self.lines if one.how == "stored" and not one.captures]

    def as_json(self) -> dict[str, object]:
        """Everything, as JSON values."""
        shapes = self.found.shapes
        return {
            "adapter": self.name or None,
            "captures": self.profile.captures,
            "without_record": self.profile.barren,
            "records": self.profile.records,
            "parts": dict(self.found.roles),
            "fields": [asdict(one) for one in self.lines],
            "never": self.never(),
            "unknown": list(self.profile.unknown),
            "locators": [
                {**asdict(one), "claims": n, "astray": self.found.astray[one]}
                for one, n in shapes.most_common()
            ],
            "troubles": dict(self.found.troubles),
            "first_troubles": self.found.first,
        }

    def show(self, *, locators: bool) -> None:
        """Tables for a person."""
        profile = self.profile
        if self.name:
            typer.echo(
                f"{self.name}: {profile.captures} captures of pages, {profile.barren} of them without a record, "
                f"{profile.records} records"
            )
            rows = [_row(one) for one in self.lines]
            print_table(
                "Fields", ("field", "how", "target", "captures", "share", "kinds", "names"), rows
            )
        if locators:
            shapes = self.found.shapes.most_common()
            astray = self.found.astray
            told = [(s.attribute, s.part, s.selector, n, astray[s]) for s, n in shapes]
            print_table("Locators", ("attribute", "part", "selector", "claims", "astray"), told)
        if self.never():
            typer.echo(f"stored, and never met: {', '.join(self.never())}")
        if profile.unknown:
            typer.echo(f"met, and not declared: {', '.join(profile.unknown)}")
        for trouble in self.found.first:
            typer.echo(f"not read: {trouble}")
        if self.found.troubles:
            typer.echo(f"not read: {sum(self.found.troubles.values())} captures")


def _row(one: Line) -> tuple[object, ...]:
    names = f"{len(one.names)} names" if "*" in one.field else ""
    share = f"{one.share:.1%}"
    return (one.field, one.how, one.target, one.captures, share, ", ".join(one.kinds), names)
