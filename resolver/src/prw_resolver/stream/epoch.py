"""The control plane: the trusted history epoch, outside the database, so that no restore brings an old one back.

It is a port with one adapter here, an fsynced file for one machine. What it holds is one small record that is replaced
as a whole against what was read, so that a key-value store with compare-and-set fits. Each question reads it anew: for
a file that is as cheap as holding it under a lease, and an epoch that is fenced counts at once.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from prw.errors import Code, PrwError
from prw_base.files import make_folder, sync_folder

RETRY_AFTER = timedelta(seconds=5)


class ControlState(StrEnum):
    """Whether the history goes on."""

    OPEN = "open"
    RESTORING = "restoring"
    """An operator restores the database: nobody writes, reads or leases until it is complete."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a database stands: which one it is, on which timeline, and the sum of its streams' positions.

    The sum is one figure that every commit raises and that a database which lost commits does not reach.
    """

    system_identifier: str
    timeline: int = 0
    positions: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """What is trusted: the epoch, and how far the database that it was given to has been seen (high-water mark).

    ``timeline`` 0 is one that was never noted. ``parted`` lists, for audit, each epoch that a restore has ended: the
    epoch, the sum of positions that it had been seen at, and the sum that was restored.
    """

    history_epoch: int
    system_identifier: str
    timeline: int = 0
    high_water: int = 0
    state: ControlState = ControlState.OPEN
    parted: tuple[tuple[int, int, int], ...] = ()

    def refusal(self, standing: Standing) -> str | None:
        """Why that database is not the one that is trusted; None where it is."""
        if standing.system_identifier != self.system_identifier:
            return f"it was written for database {self.system_identifier}, this is {standing.system_identifier}"
        if self.timeline and standing.timeline and standing.timeline != self.timeline:
            return f"the database is on timeline {standing.timeline}, it was on {self.timeline}"
        if standing.positions < self.high_water:
            return f"the database stands at {standing.positions} positions, it was seen at {self.high_water}"
        return None

    def seen(self, standing: Standing) -> Record:
        """With the high-water mark raised to where the database stands."""
        return replace(
            self,
            timeline=standing.timeline or self.timeline,
            high_water=max(self.high_water, standing.positions),
        )

    def restored(self, standing: Standing) -> Record:
        """The next epoch, of the database as it was restored; its streams begin at 0."""
        parted = (*self.parted, (self.history_epoch, self.high_water, standing.positions))
        identity = (standing.system_identifier, standing.timeline)
        return Record(self.history_epoch + 1, *identity, 0, ControlState.OPEN, parted)


class Epoch(Protocol):
    """What a writer and a feed ask the control plane."""

    def current(self) -> int:
        """The trusted epoch, from 1. Raises UNAVAILABLE while a restore is under way."""
        ...

    def require(self, history_epoch: int) -> None:
        """Raise EPOCH_FENCED unless that is the trusted epoch now."""
        ...


class EpochFile:
    """The control plane of one machine: one small file on another path than the database's."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._distrusted: PrwError | None = None

    def distrust(self, refusal: PrwError) -> None:
        """Raise this for every question of this process from now on: its database is not the trusted one any more."""
        self._distrusted = refusal

    @property
    def exists(self) -> bool:
        """Whether an epoch was ever founded here."""
        return self._path.exists()

    def current(self) -> int:
        """The epoch as the file says it now; read each time, since a restore moves it under a running server."""
        if self._distrusted is not None:
            raise self._distrusted
        record = self.read()
        if record.state is ControlState.RESTORING:
            raise PrwError(
                Code.UNAVAILABLE,
                "the database is being restored: an operator ends that with `prw resolver restore complete`",
                retry_after=RETRY_AFTER,
            )
        return record.history_epoch

    def require(self, history_epoch: int) -> None:
        """Raise EPOCH_FENCED unless the file names that epoch, UNAVAILABLE where it cannot be read (fail closed)."""
        trusted = self.current()
        if trusted != history_epoch:
            raise PrwError(
                Code.EPOCH_FENCED, f"epoch {history_epoch} is fenced; the trusted one is {trusted}"
            )

    def claim(self, system_identifier: str, timeline: int = 0, positions: int = 0) -> Record:
        """Found the first epoch for this database, or check that the file was written for it and that it lost nothing.

        Raises EPOCH_FENCED for another database, another timeline, or one that is behind: nobody restores silently.
        """
        standing = Standing(system_identifier, timeline, positions)
        if not self._path.exists():
            self._found(Record(1, system_identifier, timeline, positions))
        return self.advance(standing)

    def advance(self, standing: Standing) -> Record:
        """Raise the high-water mark to where the database stands. Raises EPOCH_FENCED where it is not trusted."""
        with self._locked():
            record = self.read()
            refusal = record.refusal(standing)
            if refusal is not None:
                raise PrwError(
                    Code.EPOCH_FENCED,
                    f"{self._path}: {refusal}. A restored, copied or promoted database needs a new epoch first: "
                    "`prw resolver restore begin`",
                )
            if record.state is ControlState.OPEN and record.seen(standing) != record:
                self._replace(record.seen(standing))
            return record

    def begin_restore(self) -> Record:
        """Stop everybody; again, it changes nothing."""
        with self._locked():
            record = replace(self.read(), state=ControlState.RESTORING)
            self._replace(record)
            return record

    def complete_restore(self, standing: Standing) -> Record:
        """Issue the next epoch for the database as it stands. Raises VALIDATION_FAILED unless a restore was begun."""
        with self._locked():
            made = self.require_restoring().restored(standing)
            self._replace(made)
            return made

    def require_restoring(self) -> Record:
        """What the file says, of a restore that was begun. Raises VALIDATION_FAILED where none was."""
        record = self.read()
        if record.state is not ControlState.RESTORING:
            raise PrwError(
                Code.VALIDATION_FAILED,
                "no restore was begun: run `prw resolver restore begin` first",
                field="state",
            )
        return record

    def read(self) -> Record:
        """What the file says. Raises UNAVAILABLE where it cannot be read."""
        try:
            stored = json.loads(self._path.read_text("utf-8"))
            return Record(
                int(stored["history_epoch"]),
                str(stored["system_identifier"]),
                int(stored.get("timeline", 0)),
                int(stored.get("high_water", 0)),
                ControlState(stored.get("state", ControlState.OPEN)),
                tuple((int(e), int(h), int(r)) for e, h, r in stored.get("parted", ())),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PrwError(
                Code.UNAVAILABLE, f"the control plane {self._path} cannot be read: {error}"
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """What is read within the block is what is replaced: other processes wait. It ends with its holder."""
        descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _found(self, record: Record) -> None:
        """Put the first record where nobody was before; what another process put there first counts."""
        make_folder(self._path.parent)
        temporary = self._write(record)
        try:
            os.link(temporary, self._path)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
        sync_folder(self._path.parent)

    def _replace(self, record: Record) -> None:
        self._write(record).rename(self._path)
        sync_folder(self._path.parent)

    def _write(self, record: Record) -> Path:
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(asdict(record), file)
            file.flush()
            os.fsync(file.fileno())
        return temporary
