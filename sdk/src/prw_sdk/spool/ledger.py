"""The ledger: what became of every item, which captures are kept, and how far they have come.

Many processes may use one ledger. Every change is one short transaction, and a verdict is given only on the version
of the item that it was formed on, so that late work cannot overwrite newer work.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from prw_base.canonical import canonical_json
from prw_sdk.spool.model import (
    CLOCK_STEP,
    CaptureState,
    Item,
    ItemKey,
    KeptCapture,
    NewCapture,
    Outcome,
    Run,
    RunEnd,
    RunProfile,
    RunTally,
    Settling,
    Verdict,
    from_text,
    to_text,
)
from prw_sdk.spool.readings import SQL as READINGS
from prw_sdk.spool.sqlite import SqliteFile, statements

_SQL = statements("ledger.sql")
_PAGE = 200
NO_END = RunEnd()
"""Nothing is said of how a run ended."""


class Ledger:
    """The items, runs and captures of a spool."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def begin_run(self, tenant: str, source_id: str, now: datetime) -> Run:
        """Take up the unfinished run of a source, or begin the next one."""
        source = {"tenant": tenant, "source_id": source_id}
        with self._file.writing() as connection:
            open_run = connection.execute(_SQL["unfinished_run"], source).fetchone()
            if open_run is not None:
                return Run(tenant, source_id, open_run["generation"], resumed=True)
            last = connection.execute(_SQL["last_generation"], source).fetchone()["generation"]
            connection.execute(
                _SQL["start_run"], source | {"generation": last + 1, "now": to_text(now)}
            )
            return Run(tenant, source_id, last + 1, resumed=False)

    def last_generation(self, tenant: str, source_id: str) -> int:
        """The newest generation of a source; 0 where it was never run."""
        row = self._one("last_generation", {"tenant": tenant, "source_id": source_id})
        return 0 if row is None else int(row["generation"])

    def is_unfinished(self, tenant: str, source_id: str) -> bool:
        """Whether a run of that source has not ended."""
        return self._one("unfinished_run", {"tenant": tenant, "source_id": source_id}) is not None

    def finish_run(self, run: Run, now: datetime, end: RunEnd = NO_END) -> int:
        """End a run: everything that it planned is terminal or put off; how many held captures may be sent now.

        A second end changes nothing, nor does a stale run overwrite the profile of a newer one (replay rule 8).
        """
        values = _run(run) | {"now": to_text(now), "planned": end.planned, "code": end.code}
        with self._file.writing() as connection:
            if connection.execute(_SQL["finish_run"], values).rowcount != 1:
                return 0
            connection.execute(_SQL["drop_tally"], values)
            if end.profile is not None:
                connection.execute(_SQL["keep_profile"], values | _profile_values(end.profile))
            return connection.execute(_SQL["release_run"], values).rowcount if end.release else 0

    def profile(self, tenant: str, source_id: str, adapter: str) -> RunProfile | None:
        """What the last good run of a source was like; None where there was none."""
        values = {"tenant": tenant, "source_id": source_id, "adapter": adapter}
        row = self._one("find_profile", values)
        return None if row is None else RunProfile(adapter, row["version"], json.loads(row["body"]))

    def tally(self, run: Run) -> bytes | None:
        """What an unfinished run has read so far (`RunTally.body`), if it has read anything."""
        row = self._one("find_tally", _run(run))
        return None if row is None else row["body"]

    def item(self, key: ItemKey) -> Item | None:
        """The item's row, if it ever had a verdict."""
        row = self._one("find_item", asdict(key))
        return None if row is None else read_item(row)

    def items(self, tenant: str, source_id: str, native_ids: Sequence[str]) -> dict[str, Item]:
        """Those of the items that ever had a verdict, by native id."""
        wanted = json.dumps(native_ids)
        values = {"tenant": tenant, "source_id": source_id, "native_ids": wanted}
        return {row["native_id"]: read_item(row) for row in self._all("find_items", values)}

    def last_capture(self, key: ItemKey) -> KeptCapture | None:
        """The newest capture of an item, in whatever state."""
        row = self._one("last_capture", asdict(key))
        return None if row is None else read_capture(row)

    def settle(self, expected: int, item: Item, capture: NewCapture | None = None) -> bool:
        """Give an item its verdict together with its capture, in one transaction.

        `expected` is the version that the verdict was formed on (`model.NEVER_SETTLED` for none). False, and nothing
        changed, if somebody settled the item meanwhile.
        """
        (applied,) = self.settle_all([Settling(expected, item, capture)])
        return applied

    def settle_all(
        self,
        several: Sequence[Settling],
        tallies: Callable[[Sequence[bool]], Iterable[RunTally]] = lambda applied: (),
    ) -> list[bool]:
        """Give verdicts in one transaction: one flush of the disk for all. For each, what `settle` says.

        `tallies` is told which were applied, and says what is to be noted of their runs in the same transaction.
        """
        with self._file.writing() as connection:
            applied = [_settle(connection, one) for one in several]
            for tally in tallies(applied):
                connection.execute(_SQL["keep_tally"], _run(tally.run) | {"body": tally.body})
            return applied

    def due(self, tenant: str, source_id: str, now: datetime, limit: int = _PAGE) -> list[Item]:
        """Items that were put off and whose time has come, by a clock that is right now (`model.CLOCK_STEP`)."""
        values = {"tenant": tenant, "source_id": source_id, "limit": limit}
        times = {"now": to_text(now), "soon": to_text(now + CLOCK_STEP)}
        return [read_item(row) for row in self._all("due_items", values | times)]

    def deferred(self, tenant: str, source_id: str, limit: int = _PAGE) -> list[Item]:
        """Items of a source that are put off or set aside."""
        values = {"tenant": tenant, "source_id": source_id, "limit": limit}
        return [read_item(row) for row in self._all("deferred_items", values)]

    def held(self, run: Run) -> int:
        """How many captures of a run are held."""
        row = self._one("count_held", _run(run))
        return 0 if row is None else int(row["n"])

    def vanished(self, run: Run, limit: int) -> list[Item]:
        """Items that the source had before this run, and that this run has not met."""
        values = {"tenant": run.tenant, "source_id": run.source_id, "generation": run.generation}
        return [read_item(row) for row in self._all("vanished_items", values | {"limit": limit})]

    def troubled(self, limit: int = _PAGE) -> list[Item]:
        """Items that are put off or set aside."""
        return [read_item(row) for row in self._all("troubled_items", {"limit": limit})]

    def revive(self, source_id: str | None, native_id: str | None, now: datetime) -> int:
        """Give what was put off, set aside, held or refused another chance; how many items and captures that were.

        Receipts that were unreadable are asked for again, and count as well.
        """
        values = {"source_id": source_id, "native_id": native_id, "now": to_text(now)}
        with self._file.writing() as connection:
            items = connection.execute(_SQL["revive_items"], values).rowcount
            items += connection.execute(_SQL["revive_damaged"], values).rowcount
            items += connection.execute(_SQL["release_held"], values).rowcount
            items += connection.execute(_SQL["revive_receipts"], values).rowcount
            return items + connection.execute(_SQL["revive_captures"], values).rowcount

    def kept(self, after: int = 0, limit: int = _PAGE) -> list[KeptCapture]:
        """A page of the captures that are still to be sent, oldest first, from after that row."""
        rows = self._all("kept_captures", {"after": after, "limit": limit})
        return [read_capture(row) for row in rows]

    def kept_sources(self) -> list[tuple[str, str]]:
        """Tenant and source of every capture that is still to be sent."""
        return [(row["tenant"], row["source_id"]) for row in self._all("kept_sources", {})]

    def bind(self, tenant: str, bound_to: str, now: datetime) -> str:
        """Note to which tenant of a resolver a tenant's captures go; the first one noted holds, and is given."""
        values = {"tenant": tenant, "bound_to": bound_to, "now": to_text(now)}
        with self._file.writing() as connection:
            connection.execute(_SQL["bind_tenant"], values)
            found = connection.execute(_SQL["bound_tenant"], values).fetchone()
            return str(found["bound_to"])

    def damaged(self) -> Iterator[KeptCapture]:
        """Captures that were not sent because their bytes were damaged, oldest first."""
        return self._pages("damaged_captures")

    def mend(self, row: int) -> None:
        """Let a capture be sent whose bytes are whole again."""
        with self._file.writing() as connection:
            connection.execute(_SQL["mend_capture"], {"row": row})

    def receipts_to_ask(self, after: int, before: datetime, limit: int) -> list[tuple[int, str]]:
        """Rows and receipts whose status may still change and was asked for no later than `before`.

        Also those that a clock asked for that was ahead of this one (`model.CLOCK_STEP`).
        """
        values: dict[str, object] = {"after": after, "limit": limit}
        times = {"before": to_text(before), "soon": to_text(before + CLOCK_STEP)}
        found = self._all("receipts_to_ask", values | times)
        return [(row["row"], row["receipt_id"]) for row in found]

    def note_receipts(self, statuses: Mapping[int, str], now: datetime) -> None:
        """Note what the resolver said of the receipts of those rows."""
        with self._file.writing() as connection:
            for row, status in statuses.items():
                values = {"row": row, "status": status, "now": to_text(now)}
                connection.execute(_SQL["note_receipt"], values)

    def receipt_statuses(self) -> dict[tuple[str, str], int]:
        """How many submitted captures of each source have each status, as the resolver said last."""
        rows = self._all("count_receipts", {})
        return {(row["source_id"], row["status"]): row["n"] for row in rows}

    def captures(self) -> Iterator[KeptCapture]:
        """Every capture, oldest first."""
        return self._pages("all_captures")

    def _pages(self, name: str) -> Iterator[KeptCapture]:
        after = 0
        while page := self._all(name, {"after": after, "limit": _PAGE}):
            yield from map(read_capture, page)
            after = page[-1]["row"]

    def mark_submitted(self, row: int, receipt_id: str) -> None:
        """Note the receipt of a capture."""
        with self._file.writing() as connection:
            connection.execute(_SQL["mark_submitted"], {"row": row, "receipt_id": receipt_id})

    def mark_refused(self, row: int, code: str, error: str) -> None:
        """Note that the resolver will not take a capture."""
        with self._file.writing() as connection:
            connection.execute(_SQL["mark_refused"], {"row": row, "code": code, "error": error})

    def outcomes(self, tenant: str | None = None) -> dict[tuple[str, Outcome], int]:
        """How many items of each source have each outcome, of one tenant or of all."""
        rows = self._all("count_outcomes", {"tenant": tenant})
        return {(row["source_id"], Outcome(row["outcome"])): row["n"] for row in rows}

    def states(self) -> dict[tuple[str, CaptureState], int]:
        """How many captures of each source are in each state."""
        rows = self._all("count_captures", {})
        return {(row["source_id"], CaptureState(row["state"])): row["n"] for row in rows}

    def _one(self, name: str, values: Mapping[str, object]) -> sqlite3.Row | None:
        with self._file.reading() as connection:
            row: sqlite3.Row | None = connection.execute(_SQL[name], values).fetchone()
            return row

    def _all(self, name: str, values: Mapping[str, object]) -> list[sqlite3.Row]:
        with self._file.reading() as connection:
            return connection.execute(_SQL[name], values).fetchall()


def _settle(connection: sqlite3.Connection, one: Settling) -> bool:
    key = one.item.key
    identity: dict[str, object] = {
        "tenant": key.tenant,
        "source_id": key.source_id,
        "native_id": key.native_id,
        "generation": one.item.generation,
    }
    values = identity | _verdict_values(one.item) | {"expected": one.expected}
    if connection.execute(_SQL["settle_item"], values).rowcount != 1:
        return False
    if one.capture is not None:
        state = CaptureState.HELD if one.held else CaptureState.KEPT
        captured_at = to_text(one.capture.captured_at)
        kept = {"captured_at": captured_at, "body": one.capture.body, "state": state.value}
        row = connection.execute(_SQL["keep_capture"], identity | kept).lastrowid
        if one.capture.reading is not None:
            reading = {"row": row, "version": one.capture.version, "body": one.capture.reading}
            connection.execute(READINGS["keep_reading"], reading)
    return True


def _profile_values(profile: RunProfile) -> dict[str, object]:
    body = canonical_json(profile.body)
    return {"adapter": profile.adapter, "version": profile.version, "body": body}


def _run(run: Run) -> dict[str, object]:
    return {"tenant": run.tenant, "source_id": run.source_id, "generation": run.generation}


def _verdict_values(item: Item) -> dict[str, object]:
    verdict = item.verdict
    return {
        "url": item.url,
        "outcome": verdict.outcome.value,
        "code": verdict.code,
        "error": verdict.error,
        "attempts": verdict.attempts,
        "retry_at": None if verdict.retry_at is None else to_text(verdict.retry_at),
        "fingerprint": verdict.fingerprint,
        "now": to_text(item.updated_at),
    }


def _key(row: sqlite3.Row) -> ItemKey:
    return ItemKey(row["tenant"], row["source_id"], row["native_id"])


def read_item(row: sqlite3.Row) -> Item:
    """The item of a row of the ledger."""
    verdict = Verdict(
        outcome=Outcome(row["outcome"]),
        code=row["code"],
        error=row["error"],
        retry_at=None if row["retry_at"] is None else from_text(row["retry_at"]),
        fingerprint=row["fingerprint"],
        attempts=row["attempts"],
    )
    updated = from_text(row["updated_at"])
    return Item(_key(row), row["url"], verdict, row["version"], row["generation"], updated)


def read_capture(row: sqlite3.Row) -> KeptCapture:
    """The capture of a row of the ledger."""
    return KeptCapture(
        row=row["row"],
        key=_key(row),
        captured_at=from_text(row["captured_at"]),
        body=row["body"],
        state=CaptureState(row["state"]),
        receipt_id=row["receipt_id"],
        code=row["code"],
        error=row["error"],
    )
