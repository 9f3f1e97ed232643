"""How far the plan of a source has come, advanced by compare-and-set only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json
from prw_sdk.spool.model import CheckpointKey, SavedCheckpoint, to_text
from prw_sdk.spool.sqlite import SqliteFile, statements

_SQL = statements("ledger.sql")


class Checkpoints:
    """The checkpoints of a spool."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def load(self, key: CheckpointKey) -> SavedCheckpoint:
        """The persisted checkpoint; revision 0 and an empty state where there is none."""
        with self._file.reading() as connection:
            row = connection.execute(_SQL["find_checkpoint"], asdict(key)).fetchone()
        if row is None:
            return SavedCheckpoint(key, 0, {})
        return SavedCheckpoint(key, row["revision"], json.loads(row["state"]))

    def advance(
        self, expected: SavedCheckpoint, state: Mapping[str, object], now: datetime
    ) -> SavedCheckpoint:
        """Persist the next state, if the checkpoint is still the one that the run had loaded.

        Raises `PrwError` CHECKPOINT_CONFLICT with the persisted winner in its details.
        """
        body = canonical_json(state)
        values = asdict(expected.key) | {"state": body, "now": to_text(now)}
        name = "next_checkpoint" if expected.revision else "first_checkpoint"
        with self._file.writing() as connection:
            changed = connection.execute(_SQL[name], values | {"expected": expected.revision})
            advanced = changed.rowcount == 1
        if not advanced:
            raise _conflict(self.load(expected.key))
        return SavedCheckpoint(expected.key, expected.revision + 1, state)

    def keys(self, tenant: str, source_id: str) -> list[CheckpointKey]:
        """The checkpoints that there are of a tenant's source."""
        values = {"tenant": tenant, "source_id": source_id}
        with self._file.reading() as connection:
            rows = connection.execute(_SQL["checkpoints_of"], values).fetchall()
        return [CheckpointKey(**dict(row)) for row in rows]

    def synced(self, key: CheckpointKey) -> int:
        """The revision that the resolver's had when it was the same as this spool's; 0 where it never was."""
        with self._file.reading() as connection:
            row = connection.execute(_SQL["synced_revision"], asdict(key)).fetchone()
        return 0 if row is None else int(row["revision"])

    def note_synced(self, key: CheckpointKey, revision: int) -> None:
        """This spool's checkpoint is the same as the resolver's at that revision."""
        with self._file.writing() as connection:
            connection.execute(_SQL["note_synced"], asdict(key) | {"revision": revision})


def _conflict(winner: SavedCheckpoint) -> PrwError:
    return PrwError(
        Code.CHECKPOINT_CONFLICT,
        f"another run of {winner.key.source_id} has advanced this checkpoint",
        details={
            "revision": str(winner.revision),
            "state": canonical_json(winner.state).decode(),
        },
    )
