"""The history epoch's home: outside the database, so that no restore brings an old one back.

It is a port with one adapter here, an fsynced file for one machine; a key-value store fits the same three questions.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from prw.errors import Code, PrwError
from prw_base.files import make_folder, sync_folder


@dataclass(frozen=True, slots=True)
class Identity:
    """The trusted epoch, and the database that it was given to (its system identifier, decimal)."""

    history_epoch: int
    system_identifier: str


class Epoch(Protocol):
    """What a writer and a feed ask the control plane."""

    def current(self) -> int:
        """The trusted epoch, from 1."""
        ...

    def require(self, history_epoch: int) -> None:
        """Raise EPOCH_FENCED unless that is the trusted epoch now."""
        ...


class EpochFile:
    """The control plane of one machine: one small file on another path than the database's."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def current(self) -> int:
        """The epoch as the file says it now; read each time, since a restore moves it under a running server."""
        return self._read().history_epoch

    def require(self, history_epoch: int) -> None:
        """Raise EPOCH_FENCED unless the file names that epoch."""
        trusted = self.current()
        if trusted != history_epoch:
            raise PrwError(
                Code.EPOCH_FENCED, f"epoch {history_epoch} is fenced; the trusted one is {trusted}"
            )

    def claim(self, system_identifier: str) -> Identity:
        """Found the first epoch for this database, or check that the file was written for it.

        Raises EPOCH_FENCED for another database: nobody restores silently.
        """
        if not self._path.exists():
            self._write(Identity(1, system_identifier))
        identity = self._read()
        if identity.system_identifier != system_identifier:
            raise PrwError(
                Code.EPOCH_FENCED,
                f"{self._path} was written for database {identity.system_identifier}, this is {system_identifier}: "
                "a restored or copied database needs a new epoch first",
            )
        return identity

    def _read(self) -> Identity:
        try:
            stored = json.loads(self._path.read_text("utf-8"))
            return Identity(int(stored["history_epoch"]), str(stored["system_identifier"]))
        except (OSError, ValueError, KeyError) as error:
            raise PrwError(
                Code.UNAVAILABLE, f"the control plane {self._path} cannot be read: {error}"
            ) from error

    def _write(self, identity: Identity) -> None:
        """Write a temporary file, fsync it, link it where nobody was before, fsync the folder."""
        make_folder(self._path.parent)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(asdict(identity), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, self._path)
        except FileExistsError:
            pass  # another process founded it first; what it wrote counts
        finally:
            temporary.unlink()
        sync_folder(self._path.parent)
