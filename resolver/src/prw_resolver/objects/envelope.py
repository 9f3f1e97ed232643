"""The file that holds one object: a line of JSON metadata, then the bytes."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json
from prw_resolver.objects.model import ObjectMeta, StoredObject

_HEADER_LIMIT: Final = 4096


class Draft:
    """A temporary envelope that is being written; it becomes an object by a link to its sealed file."""

    def __init__(self, folder: Path, meta: ObjectMeta) -> None:
        """Nothing is on the disk before `begin`."""
        self.meta = meta
        self.path = folder / uuid.uuid4().hex
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._size = 0

    def begin(self) -> None:
        """Make the file."""
        self._file = open(self.path, "xb")  # noqa: SIM115 - closed by discard
        self._file.write(_header(self.meta))

    def write(self, chunk: bytes) -> None:
        """Add bytes; DIGEST_MISMATCH as soon as there are more than were declared."""
        self._size += len(chunk)
        check_room(self.meta, self._size)
        self._hash.update(chunk)
        self._open_file.write(chunk)

    def seal(self) -> None:
        """Check size and digest, and make the file durable."""
        if self._size != self.meta.size:
            raise _mismatch(f"{self._size} bytes instead of the {self.meta.size} declared")
        if self._hash.hexdigest() != self.meta.sha256:
            raise _mismatch("the bytes do not hash to the declared digest")
        self._open_file.flush()
        os.fsync(self._open_file.fileno())

    def discard(self) -> None:
        """Drop the temporary name; an object that was linked from it stays."""
        if self._file is None:
            return
        self.path.unlink(missing_ok=True)
        # A full disk refuses to flush what is being thrown away.
        with suppress(OSError):
            self._file.close()

    @property
    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("the draft has not begun")
        return self._file


def check_room(meta: ObjectMeta, size: int) -> None:
    """DIGEST_MISMATCH where `size` bytes are more than were declared."""
    if size > meta.size:
        raise _mismatch(f"more than the {meta.size} bytes that were declared")


def read_meta(path: Path) -> ObjectMeta | None:
    """The metadata of the object at `path`, or None where there is none."""
    try:
        with open(path, "rb") as file:
            return _parse(file)
    except FileNotFoundError:
        return None


def read(path: Path) -> StoredObject | None:
    """The object at `path`, or None; DIGEST_MISMATCH where its bytes are no longer what was stored."""
    try:
        with open(path, "rb") as file:
            stored = StoredObject(_parse(file), file.read())
    except FileNotFoundError:
        return None
    if hashlib.sha256(stored.body).hexdigest() != stored.meta.sha256:
        raise _mismatch(f"object {stored.meta.sha256} is damaged")
    return stored


def _header(meta: ObjectMeta) -> bytes:
    fields = {"bytes": meta.size, "media_type": meta.media_type, "sha256": meta.sha256}
    return canonical_json(fields) + b"\n"


def _parse(file: BinaryIO) -> ObjectMeta:
    try:
        fields = json.loads(file.readline(_HEADER_LIMIT))
        return ObjectMeta(str(fields["sha256"]), int(fields["bytes"]), str(fields["media_type"]))
    except (ValueError, KeyError, TypeError) as unreadable:
        raise _mismatch("an object's metadata is damaged") from unreadable


def _mismatch(message: str) -> PrwError:
    return PrwError(Code.DIGEST_MISMATCH, message)
