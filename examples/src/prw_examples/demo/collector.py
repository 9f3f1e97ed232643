"""The collector as a process: its settings, and what it tells while it works."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from prw_base.cli import FAILED
from prw_examples.demo.audit.service import Collected
from prw_examples.demo.children import Children, DemoFailed, prw
from prw_examples.demo.layout import COLLECTOR, SCOPE, WORKER, Layout
from prw_examples.street import sources_toml
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState
from prw_sdk.spool.sqlite import SpoolUnusable

Event = dict[str, Any]
Watch = Callable[[Event], None]

_SETTINGS = """\
# Written by `prw demo` at every start.
spool = "spool"
contact = "https://street.example/contact"
tenant = "{tenant}"

[rate]
per_second = 40.0
at_once = 4

[resolver]
address = "{resolver}"
token_file = "tokens/collector.jwt"
worker = "{worker}"
instance = "{instance}"

"""


@dataclass(frozen=True, slots=True)
class SourceRun:
    """What the run of one source came to, as the collector says it."""

    source: str
    planned: int
    fetched: int
    kept: int
    unchanged: int
    ended: str


@dataclass(frozen=True, slots=True)
class Spooled:
    """How many captures a spool holds, and how many of them have not been handed over."""

    kept: int = 0
    unsent: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """The whole run: its sources, and how many captures the spool holds after it."""

    sources: tuple[SourceRun, ...]
    spooled: Spooled

    @property
    def collected(self) -> Collected:
        """The figures that the collector alone can tell."""
        return Collected(sum(one.fetched for one in self.sources), self.spooled.kept)


def write_settings(layout: Layout, resolver: str, street: int) -> None:
    """The collector's settings file: the street's sources, and the resolver to send to."""
    head = _SETTINGS.format(
        tenant=SCOPE.tenant_id, resolver=resolver, worker=WORKER, instance=COLLECTOR
    )
    layout.sources.write_text(head + sources_toml(street), "utf-8")


async def collect(children: Children, layout: Layout, watch: Watch) -> Run:
    """Run the collector over all sources; `watch` is told each event as it comes.

    DemoFailed where it could not do its work. What it put off or set aside is told by its own status, not here.
    """
    command = prw("collect", "run", "--config", str(layout.sources), "--json")
    child = await children.start("collector", command, serves=False, piped=True)
    reading = asyncio.gather(
        _events(child.process.stderr, child.log.open("a"), watch), _all(child.process.stdout)
    )
    status = await children.finish(child)
    _, summary = await reading
    held = spooled(layout)
    if status not in (0, FAILED) or held.unsent:
        raise DemoFailed(f"{held.unsent} captures were not handed over; {child.describe_end()}")
    return Run(tuple(map(_source_run, json.loads(summary))), held)


def spooled(layout: Layout) -> Spooled:
    """How many captures the spool holds; none where there is no spool yet."""
    try:
        spool = Spool.existing(layout.spool)
    except SpoolUnusable:
        return Spooled()
    try:
        states = Counter[CaptureState]()
        for (_, state), number in spool.ledger.states().items():
            states[state] += number
    finally:
        spool.close()
    return Spooled(states.total(), states[CaptureState.KEPT])


async def _events(stream: asyncio.StreamReader | None, log: IO[str], watch: Watch) -> None:
    with log:
        while stream is not None and (raw := await stream.readline()):
            line = raw.decode("utf-8", "replace")
            log.write(line)
            log.flush()
            if line.startswith("{"):
                watch(json.loads(line))


async def _all(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()


def _source_run(row: dict[str, Any]) -> SourceRun:
    names = ("source", "planned", "fetched", "kept", "unchanged", "ended")
    return SourceRun(**{name: row[name] for name in names})


class Tally:
    """Counts the collector's events."""

    def __init__(self) -> None:
        self.planned = 0
        self._seen: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        """Take note of one event."""
        self._seen[event.get("event", "")] += 1
        if event.get("event") == "planned":
            self.planned += event.get("count", 0)
        self._seen["kept"] += bool(event.get("kept"))

    @property
    def settled(self) -> int:
        """How many items have an outcome."""
        return self._seen["settled"] + self._seen["skipped"]

    @property
    def kept(self) -> int:
        """How many captures were kept."""
        return self._seen["kept"]
