"""The object store on a local file system: a temporary envelope, fsync, an exclusive link, fsync of the folder.

An object is one file: a line of JSON metadata, then the bytes. One file means that bytes and metadata appear together
or not at all, and a hard link fails where the name exists, so nothing is ever overwritten.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.files import make_folder, sync_folder
from prw_resolver.objects import envelope
from prw_resolver.objects.model import ObjectKey, ObjectMeta, Put, StoredObject

LEFTOVER_AGE: Final = timedelta(days=1)
"""Temporary files older than this belong to a writer that is gone."""

SMALL: Final = 256 * 1024
"""Up to so many bytes an object is held in memory and written by one visit to a thread."""

_T = TypeVar("_T")


class LocalObjectStore:
    """Objects as files below one folder. Any number of processes of one machine may share it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._incoming = root / "incoming"

    @classmethod
    def open(cls, root: Path) -> LocalObjectStore:
        """Use `root`, making it where it is missing, and drop what writers that were killed left behind."""
        store = cls(root)
        make_folder(store._incoming)
        store._sweep()
        return store

    async def put_if_absent(
        self, key: ObjectKey, meta: ObjectMeta, chunks: AsyncIterable[bytes]
    ) -> Put:
        """See `ObjectStore.put_if_absent`."""
        if meta.size <= SMALL:
            return await _disk(self._put_small, key, meta, await _whole(meta, chunks))
        draft = envelope.Draft(self._incoming, meta)
        try:
            await _disk(draft.begin)
            async for chunk in chunks:
                await _disk(draft.write, chunk)
            return await _disk(self._commit, draft, key)
        finally:
            draft.discard()

    async def get(self, key: ObjectKey) -> StoredObject:
        """See `ObjectStore.get`."""
        held = await _disk(envelope.read, self._path(key))
        if held is None:
            raise PrwError(Code.NOT_FOUND, f"no object {key.sha256}")
        return held

    async def head(self, key: ObjectKey) -> ObjectMeta | None:
        """See `ObjectStore.head`."""
        return await _disk(envelope.read_meta, self._path(key))

    def _put_small(self, key: ObjectKey, meta: ObjectMeta, body: bytes) -> Put:
        draft = envelope.Draft(self._incoming, meta)
        try:
            draft.begin()
            draft.write(body)
            return self._commit(draft, key)
        finally:
            draft.discard()

    def _commit(self, draft: envelope.Draft, key: ObjectKey) -> Put:
        draft.seal()
        fault("objects.after_fsync")
        target = self._path(key)
        make_folder(target.parent)
        outcome = _link(draft, target)
        # Also where it was there already: its writer may have been killed between link and fsync.
        sync_folder(target.parent)
        fault("objects.after_link")
        return outcome

    def _path(self, key: ObjectKey) -> Path:
        return self._root.joinpath("evidence", *key.path)

    def _sweep(self) -> None:
        oldest = time.time() - LEFTOVER_AGE.total_seconds()
        for leftover in self._incoming.iterdir():
            if leftover.stat().st_mtime < oldest:
                leftover.unlink(missing_ok=True)


async def _whole(meta: ObjectMeta, chunks: AsyncIterable[bytes]) -> bytes:
    """The bytes of a small object; what goes beyond its declared size is not held."""
    held = bytearray()
    async for chunk in chunks:
        held += chunk
        envelope.check_room(meta, len(held))
    return bytes(held)


def _link(draft: envelope.Draft, target: Path) -> Put:
    try:
        os.link(draft.path, target)
    except FileExistsError:
        held = envelope.read_meta(target)
        if held is not None:
            draft.meta.same_or_conflict(held)
        return Put.ALREADY
    return Put.STORED


async def _disk(work: Callable[..., _T], *args: object) -> _T:
    """Run blocking `work` in a thread; what the disk refuses becomes STORAGE_UNAVAILABLE.

    A caller that is cancelled waits for the thread, so that nobody cleans up under it.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        await _ended(thread)
        raise
    except OSError as refused:
        name = errno.errorcode.get(refused.errno or 0, "unknown")
        raise PrwError(
            Code.STORAGE_UNAVAILABLE, f"the object store refused with {name}"
        ) from refused


async def _ended(thread: asyncio.Future[_T]) -> None:
    while not thread.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([thread])
    # Nobody is left to be told.
    if not thread.cancelled():
        thread.exception()
