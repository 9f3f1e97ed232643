"""What an operator asks of a spool: pages of items, how runs ended, and how old checkpoints are. Nothing is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from prw_sdk.spool.ledger import read_capture, read_item
from prw_sdk.spool.model import Item, ItemKey, KeptCapture, Outcome, from_text, to_text
from prw_sdk.spool.sqlite import SqliteFile, statements

_SQL = statements("looking.sql")
START = ItemKey("", "", "")
"""Before the first item."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items are asked for; None asks for all."""

    source_id: str | None = None
    outcome: Outcome | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class RunSeen:
    """A run, and what there is to show for it.

    `planned` is None where nothing is known of it; `settled` counts items that have a verdict of the run or of a later
    one, or that it found put off or set aside; `kept` counts the captures of the run.
    """

    tenant: str
    source_id: str
    generation: int
    started_at: datetime
    finished_at: datetime | None
    planned: int | None
    code: str | None
    settled: int
    kept: int


@dataclass(frozen=True, slots=True)
class CheckpointSeen:
    """A checkpoint, when it was advanced last, and when a run of its source ended well last."""

    source_id: str
    adapter: str
    partition: str
    revision: int
    advanced_at: datetime
    run_ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many captures or items of a source wait for a person, and why: `held`, `refused` or `poison`."""

    source_id: str
    state: str
    code: str | None
    count: int


class Looking:
    """Questions to the ledger of a spool."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def items(self, wanted: Wanted, after: ItemKey = START, limit: int = 200) -> list[Item]:
        """A page of items in the order of their identity, from after that one (replay rule 10)."""
        values = {
            "after_tenant": after.tenant,
            "after_source": after.source_id,
            "after_item": after.native_id,
            "source_id": wanted.source_id,
            "outcome": None if wanted.outcome is None else wanted.outcome.value,
            "code": wanted.code,
            "limit": limit,
        }
        return [read_item(row) for row in self._all("items_page", values)]

    def capture_at(self, key: ItemKey, captured_at: datetime) -> KeptCapture | None:
        """The capture of an item at that moment, if the spool has it."""
        rows = self._all("capture_at", asdict(key) | {"captured_at": to_text(captured_at)})
        return read_capture(rows[0]) if rows else None

    def refused(self, tenant: str, source_id: str, limit: int) -> list[KeptCapture]:
        """Captures of a source that the resolver will not take, oldest first."""
        values = {"tenant": tenant, "source_id": source_id, "limit": limit}
        return [read_capture(row) for row in self._all("refused_captures", values)]

    def last_runs(self) -> list[RunSeen]:
        """The newest ended run of each source."""
        return [_run(row) for row in self._all("last_runs")]

    def unfinished_runs(self) -> list[RunSeen]:
        """Runs that have not ended: they go on, or were interrupted."""
        return [_run(row) for row in self._all("unfinished_runs")]

    def sources(self) -> list[tuple[str, str]]:
        """Tenant and source of everything that was ever run."""
        return [(row["tenant"], row["source_id"]) for row in self._all("known_sources")]

    def checkpoints(self) -> list[CheckpointSeen]:
        """Every checkpoint."""
        return [_checkpoint(row) for row in self._all("checkpoint_ages")]

    def waiting(self) -> list[Waiting]:
        """What waits for a person, counted by source and reason."""
        rows = self._all("count_codes")
        return [Waiting(row["source_id"], row["state"], row["code"], row["n"]) for row in rows]

    def _all(self, name: str, values: Mapping[str, object] | None = None) -> list[sqlite3.Row]:
        with self._file.reading() as connection:
            return connection.execute(_SQL[name], values or {}).fetchall()


def _run(row: sqlite3.Row) -> RunSeen:
    return RunSeen(
        tenant=row["tenant"],
        source_id=row["source_id"],
        generation=row["generation"],
        started_at=from_text(row["started_at"]),
        finished_at=None if row["finished_at"] is None else from_text(row["finished_at"]),
        planned=row["planned"],
        code=row["code"],
        settled=row["settled"],
        kept=row["kept"],
    )


def _checkpoint(row: sqlite3.Row) -> CheckpointSeen:
    ended = row["finished_at"]
    return CheckpointSeen(
        source_id=row["source_id"],
        adapter=row["adapter"],
        partition=row["partition"],
        revision=row["revision"],
        advanced_at=from_text(row["updated_at"]),
        run_ended_at=None if ended is None else from_text(ended),
    )
