"""Objects as files: written whole, hashed and durable, or not there at all; read from an offset."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from prw.errors import Code, PrwError
from prw_base.files import make_folder, sync_folder

CHUNK_BYTES = 256 * 1024
_BUFFER_BYTES = 1024 * 1024
_LEVEL = 1
"""Faster than the disk, and a fifth of the bytes already; a higher one costs more than it saves on a local network."""


class ObjectWriter:
    """Compresses what it is given into a file, which has its name once it is whole and durable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fresh = path.with_name(f".{path.name}.new")
        self._hash = hashlib.sha256()
        self._zstd = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
        self._buffer = bytearray()
        self._file: BinaryIO = self._fresh.open("wb")
        self.bytes = 0

    async def add(self, rows: Any) -> None:
        """Take the next bytes; they are compressed in a thread, a piece at a time."""
        self._buffer += rows
        if len(self._buffer) >= _BUFFER_BYTES:
            piece, self._buffer = self._buffer, bytearray()
            await asyncio.to_thread(self._write, piece)

    async def finish(self) -> str:
        """Make the object durable under its name; returns the SHA-256 of its stored bytes."""
        await asyncio.to_thread(self._finish)
        return self._hash.hexdigest()

    def abandon(self) -> None:
        """Leave nothing of an object that did not become whole."""
        self._file.close()
        self._fresh.unlink(missing_ok=True)

    def _write(self, piece: bytearray) -> None:
        self._keep(self._zstd.compress(bytes(piece)))

    def _keep(self, compressed: bytes) -> None:
        self._hash.update(compressed)
        self._file.write(compressed)
        self.bytes += len(compressed)

    def _finish(self) -> None:
        self._write(self._buffer)
        self._keep(self._zstd.flush())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._fresh.rename(self._path)
        sync_folder(self._path.parent)


class Folder:
    """Where exports' objects are, a folder an export."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def make(self, export_id: str) -> None:
        """Make an export's folder."""
        make_folder(self._root / export_id)

    def writer(self, export_id: str, name: str) -> ObjectWriter:
        """What writes one object."""
        return ObjectWriter(self._path(export_id, name))

    async def read(self, export_id: str, name: str, offset: int) -> AsyncIterator[bytes]:
        """The stored bytes from an offset, in pieces of at most 256 KiB. Raises EXPORT_EXPIRED."""
        try:
            file = await asyncio.to_thread(self._path(export_id, name).open, "rb")
        except FileNotFoundError as error:
            raise PrwError(Code.EXPORT_EXPIRED, f"object {name} of {export_id} is gone") from error
        with file:
            file.seek(offset)
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield chunk

    async def remove(self, export_id: str) -> None:
        """Remove an export's folder with all that is in it."""
        await asyncio.to_thread(shutil.rmtree, self._root / export_id, ignore_errors=True)

    def _path(self, export_id: str, name: str) -> Path:
        return self._root / export_id / f"{name}.zst"
