"""The live view of a run: rates, the queue, what is still to be sent, and the slowest hosts."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from prw_sdk.cli.view import Figures, as_line, live, told
from prw_sdk.report import Event, EventKind
from prw_sdk.spool.model import Outcome

SETTLED = Event(EventKind.SETTLED, "src", "a", Outcome.STORED, kept=True, host="a.example")


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        """The moment."""
        return self.now


def test_rates_are_those_of_the_last_seconds() -> None:
    """What happened before does not count."""
    clock = Clock()
    figures = Figures(clock)
    for _ in range(20):
        figures(SETTLED)
    assert figures.rate("settled") == 2.0
    clock.now += 60
    assert figures.rate("settled") == 0.0


def test_the_queue_is_what_is_planned_and_not_settled() -> None:
    """And what is kept and not sent waits as well."""
    figures = Figures(Clock())
    figures(Event(EventKind.PLANNED, "src", count=5))
    figures(SETTLED)
    figures(replace(SETTLED, kept=False, outcome=Outcome.UNCHANGED))
    assert (figures.queue, figures.to_send) == (3, 1)
    figures(Event(EventKind.SUBMITTED, "src", "a"))
    assert figures.to_send == 0


def test_hosts_are_ranked_by_their_mean() -> None:
    """Skipped items asked nobody."""
    figures = Figures(Clock())
    for host, seconds in (("a", 1.0), ("a", 3.0), ("b", 5.0), ("c", 0.1), ("d", 0.2)):
        figures(replace(SETTLED, host=host, seconds=seconds))
    figures(replace(SETTLED, kind=EventKind.SKIPPED, host="e", seconds=0.0))
    assert figures.slowest() == [("b", 5.0, 1), ("a", 2.0, 2), ("d", 0.2, 1)]


def test_a_terminal_shows_all_of_it() -> None:
    """What a source says is no markup."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)
    with live(console) as watch:
        watch(Event(EventKind.PLANNED, "src_[red]one", count=3))
        watch(replace(SETTLED, source_id="src_[red]one", seconds=1.5))
        watch(Event(EventKind.SUBMITTED, "src_[red]one", "a"))
        watch(Event(EventKind.CHANGED, "src_[red]one", code="DROPPED", error="the [b]price[/b]"))
    text = out.getvalue()
    for said in ("src_[red]one", "1/3", "2 queued", "0 to send", "slowest: a.example 1.5 s"):
        assert said in text
    assert "DROPPED: the [b]price[/b]" in text


def test_a_line_elsewhere_has_no_place_for_figures() -> None:
    """Its keys are what scripts know."""
    assert "host" not in as_line(SETTLED)


def test_a_table_leaves_out_what_is_nothing_everywhere() -> None:
    """But for the columns that are always looked for."""
    rows = [("a", 0, 1, 0), ("b", 0, 0, 0)]
    names, shown = told(("source", "stored", "held", "poison"), rows, ("source", "stored"))
    assert (names, shown) == (["source", "stored", "held"], [["a", 0, 1], ["b", 0, 0]])
