"""Content-addressed files: a file's name is the SHA-256 of its bytes, and it appears whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from prw_base.files import make_folder, sync_folder
from prw_sdk.spool.sqlite import SpoolUnusable


class BlobDamaged(Exception):
    """A file does not hold the bytes that its name says."""


class BlobMissing(LookupError):
    """The spool has no such bytes."""


class Blobs:
    """A folder of blobs that many processes may write at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_folder(folder)

    def path(self, sha256: str) -> Path:
        """Where those bytes are kept."""
        return self._folder / sha256[:2] / sha256

    def put(self, body: bytes) -> str:
        """Keep the bytes durably and return their SHA-256; keeping them twice is harmless, and mends a damaged file.

        Raises `SpoolUnusable` where the disk refuses.
        """
        sha256 = hashlib.sha256(body).hexdigest()
        path = self.path(sha256)
        try:
            if self._holds(path, body):
                # whoever wrote it may have been killed before the name was durable
                sync_folder(path.parent)
            else:
                self._write(path, body)
        except OSError as refused:
            raise SpoolUnusable(
                f"the spool cannot keep bytes: {refused.strerror or refused}; what it held it still "
                "holds, so mend the disk and run again"
            ) from refused
        return sha256

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

    def _write(self, path: Path, body: bytes) -> None:
        make_folder(path.parent)
        # the name starts with a dot and is random: a crash leaves it behind, and nothing reads it
        temporary = path.parent / f".{path.name[:8]}.{secrets.token_hex(8)}"
        try:
            _write_synced(temporary, body)
            self._publish(temporary, path, body)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)

    def _publish(self, temporary: Path, path: Path, body: bytes) -> None:
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
            return
        if not self._holds(path, body):
            temporary.replace(path)


def _write_synced(path: Path, body: bytes) -> None:
    with path.open("xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
