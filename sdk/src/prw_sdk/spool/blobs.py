"""Content-addressed files: a file's name is the SHA-256 of its bytes, and it appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import TypeVar

from prw_base.files import make_folder, sync_folder
from prw_sdk.spool.sqlite import SpoolUnusable

T = TypeVar("T")

_FLUSHES = 16
"""Files on their way to the disk at the same time: it takes many flushes in the time of a few."""


class BlobDamaged(Exception):
    """A file does not hold the bytes that its name says."""


class BlobMissing(LookupError):
    """The spool has no such bytes."""


class Blobs:
    """A folder of blobs that many processes may write at once."""

    def __init__(self, folder: Path, *, make: bool = True) -> None:
        self._folder = folder
        if make:
            make_folder(folder)
        self._threads = ThreadPoolExecutor(_FLUSHES, "flush")

    def close(self) -> None:
        """End the threads; what is being kept is kept first."""
        self._threads.shutdown()

    def path(self, sha256: str) -> Path:
        """Where those bytes are kept."""
        return self._folder / sha256[:2] / sha256

    def put(self, body: bytes) -> str:
        """Keep the bytes durably and return their SHA-256; keeping them twice is harmless, and mends a damaged file.

        Raises `SpoolUnusable` where the disk refuses.
        """
        (sha256,) = self.put_all([body])
        return sha256

    def put_all(self, bodies: Sequence[bytes]) -> list[str]:
        """Keep several durably, as `put` does each: every file is flushed and named, then each folder once."""
        names = [hashlib.sha256(body).hexdigest() for body in bodies]
        try:
            self._keep(dict(zip(names, bodies, strict=True)))
        except OSError as refused:
            raise SpoolUnusable(
                f"the spool cannot keep bytes: {refused.strerror or refused}; what it held it still "
                "holds, so mend the disk and run again"
            ) from refused
        return names

    def get(self, sha256: str) -> bytes:
        """The bytes; raises `BlobMissing`, or `BlobDamaged` when they are not what the name says."""
        try:
            body = self.path(sha256).read_bytes()
        except OSError as missing:
            raise BlobMissing(f"{self.path(sha256)}: {missing.strerror}") from missing
        if hashlib.sha256(body).hexdigest() != sha256:
            raise BlobDamaged(f"{self.path(sha256)} does not hold the bytes that its name says")
        return body

    def has(self, sha256: str, size: int) -> bool:
        """Whether a file of that name and length is there; what it holds is not read."""
        try:
            return self.path(sha256).stat().st_size == size
        except OSError:
            return False

    def is_whole(self, sha256: str) -> bool:
        """Whether the bytes are there and are what their name says."""
        try:
            self.get(sha256)
        except (BlobMissing, BlobDamaged):
            return False
        return True

    def _holds(self, path: Path, body: bytes) -> bool:
        return self.has(path.name, len(body)) and path.read_bytes() == body

    def _keep(self, bodies: Mapping[str, bytes]) -> None:
        paths = {self.path(sha256): body for sha256, body in bodies.items()}
        fresh = {path: body for path, body in paths.items() if not self._holds(path, body)}
        self._side_by_side(_put, list(fresh.items()))
        # also of those that were there: whoever wrote them may have been killed before the name was durable
        self._side_by_side(sync_folder, {self._folder, *(path.parent for path in paths)})

    def _side_by_side(self, do: Callable[[T], None], several: Collection[T]) -> None:
        if len(several) <= 2:
            for one in several:
                do(one)
            return
        for _ in self._threads.map(do, several):
            pass


def _put(entry: tuple[Path, bytes]) -> None:
    path, body = entry
    make_folder(path.parent)
    # the name starts with a dot and is random: a crash leaves it behind, and nothing reads it
    temporary = f"{path.parent}/.{path.name[:8]}.{secrets.token_hex(8)}"
    try:
        with open(temporary, "xb", buffering=0) as file:
            _write_whole(file, body)
            os.fsync(file.fileno())
        # whole or not at all; in place of a damaged file, or of the same bytes that another process put there
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _write_whole(file: FileIO, body: bytes) -> None:
    left = memoryview(body)
    while left:
        left = left[file.write(left) :]
