"""What a run tells of itself while it goes on, and the counts that its report is made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from urllib.parse import urlsplit

import structlog

from prw_sdk.collect.book import Judgement
from prw_sdk.collect.reading import READ_FAILED
from prw_sdk.report import Event, EventKind, Failure, SourceReport, Watch
from prw_sdk.spool.model import Item, Outcome, Run

HOST_PAUSED = "HOST_PAUSED"
_log = structlog.get_logger(__name__)


def contained(watch: Watch) -> Watch:
    """The same onlooker, whose own failure is logged once and ends nothing."""
    failed = False

    def look(event: Event) -> None:
        nonlocal failed
        try:
            watch(event)
        except Exception:  # noqa: BLE001 - an onlooker must not take the run down
            if not failed:
                _log.exception("an observer of the run failed", event_kind=event.kind.value)
            failed = True

    return look


class Telling:
    """The events and counts of one source's run."""

    def __init__(self, source_id: str, watch: Watch) -> None:
        self._source_id = source_id
        self._watch = contained(watch)
        self._outcomes: Counter[Outcome] = Counter()
        self._kept = self._skipped = self._unreadable = 0
        self.planned = 0

    def say(self, kind: EventKind, count: int = 0) -> None:
        """Something happened to the source."""
        self._watch(Event(kind, self._source_id, count=count))

    def pause(self, host: str, asked: float, heeded: float) -> None:
        """A host has asked for a pause of so many seconds, and is asked nothing for so many."""
        said = f"{host} asked for a pause of {asked:.0f} s, and is asked nothing for {heeded:.0f} s"
        remedy = f"`prw collect retry --host {host}` ends it"
        self._watch(
            Event(
                EventKind.PAUSED,
                self._source_id,
                code=HOST_PAUSED,
                error=f"{said}; {remedy}",
                host=host,
                seconds=heeded,
            )
        )

    def plan(self, count: int) -> None:
        """So many targets more are planned."""
        self.planned += count
        self.say(EventKind.PLANNED, count)

    def item(self, item: Item, *, skipped: bool, kept: bool = False, seconds: float = 0.0) -> None:
        """An item was settled in so many seconds, or had been."""
        said = item.verdict
        self._outcomes[said.outcome] += 1
        self._skipped += skipped
        self._unreadable += said.code == READ_FAILED
        self._kept += kept
        kind = EventKind.SKIPPED if skipped else EventKind.SETTLED
        name = item.key.native_id
        told = Event(kind, self._source_id, name, said.outcome, said.code, said.error, kept=kept)
        self._watch(replace(told, host=_host(item.url), seconds=seconds))

    def fail(self, code: str, message: str) -> Failure:
        """The run has failed."""
        self._watch(Event(EventKind.FAILED, self._source_id, code=code, error=message))
        return Failure(code, message)

    def judgement(self, judgement: Judgement) -> None:
        """What the source states otherwise than before, and the bounds that were not kept."""
        for change in judgement.changes:
            code = change.kind.value.upper()
            self._watch(Event(EventKind.CHANGED, self._source_id, code=code, error=str(change)))
        for breach in judgement.breaches:
            code = "MINIMUM" if breach.is_failure else "MAXIMUM"
            self._watch(Event(EventKind.BREACHED, self._source_id, code=code, error=str(breach)))

    @property
    def waits(self) -> bool:
        """Whether items of the run wait for a later one or for a person."""
        return bool(self._outcomes[Outcome.RETRY_AT] + self._outcomes[Outcome.POISON])

    def report(self, run: Run, fetched: int) -> SourceReport:
        """The counts as a report."""
        return SourceReport(
            source_id=run.source_id,
            generation=run.generation,
            planned=self.planned,
            fetched=fetched,
            kept=self._kept,
            skipped=self._skipped,
            unreadable=self._unreadable,
            outcomes=self._outcomes,
            resumed=run.resumed,
        )


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
