"""The object store on a local file system."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from prw.errors import Code, PrwError
from prw_resolver.objects.local import LocalObjectStore
from tests.resolver.object_store_contract import (
    HTML,
    ObjectStoreContract,
    key_of,
    meta_of,
    pieces,
)

WRITER = """
import asyncio, sys
from pathlib import Path
from prw_resolver.objects.local import LocalObjectStore
from tests.resolver.object_store_contract import HTML, key_of, meta_of, pieces
store = LocalObjectStore.open(Path(sys.argv[1]))
asyncio.run(store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML)))
"""


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    """An empty store."""
    return LocalObjectStore.open(tmp_path)


class TestLocalObjectStore(ObjectStoreContract):
    """The local adapter keeps the port's contract."""


@pytest.mark.parametrize("point", ["objects.after_fsync", "objects.after_link"])
async def test_a_writer_killed_at_any_point_leaves_a_put_that_can_be_repeated(
    tmp_path: Path, point: str
) -> None:
    """Kill -9 leaves the whole object or none, and the same put then succeeds."""
    env = os.environ | {"PRW_FAULTS": f"{point}=kill"}
    command = (sys.executable, "-c", WRITER, str(tmp_path))
    writer = await asyncio.create_subprocess_exec(*command, env=env)
    assert await writer.wait() == -signal.SIGKILL
    store = LocalObjectStore.open(tmp_path)
    assert await store.head(key_of(HTML)) in (None, meta_of(HTML))
    await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
    assert (await store.get(key_of(HTML))).body == HTML


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
async def test_a_disk_that_refuses_is_storage_unavailable(
    store: LocalObjectStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A full or read-only disk is told as STORAGE_UNAVAILABLE, which may be tried again."""

    def refuse(_: int) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(PrwError) as refused:
        await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
    assert refused.value.code is Code.STORAGE_UNAVAILABLE
    assert refused.value.retryable
    assert await store.head(key_of(HTML)) is None


async def test_nothing_temporary_stays_after_a_put(store: LocalObjectStore, tmp_path: Path) -> None:
    """Stored, found and refused puts all clean up."""
    await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
    await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
    with pytest.raises(PrwError):
        await store.put_if_absent(key_of(b"x"), meta_of(b"x"), pieces(b"y"))
    assert list((tmp_path / "incoming").iterdir()) == []


def test_opening_drops_only_what_a_dead_writer_left(tmp_path: Path) -> None:
    """A file that may still be written is left alone."""
    LocalObjectStore.open(tmp_path)
    old, new = tmp_path / "incoming" / "old", tmp_path / "incoming" / "new"
    old.touch()
    new.touch()
    os.utime(old, (0, time.time() - 2 * 86400))
    LocalObjectStore.open(tmp_path)
    assert [path.name for path in (tmp_path / "incoming").iterdir()] == ["new"]


async def test_damaged_bytes_are_never_handed_out(store: LocalObjectStore, tmp_path: Path) -> None:
    """Bytes that no longer hash to their name are DIGEST_MISMATCH."""
    await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
    [path] = [p for p in (tmp_path / "evidence").rglob("*") if p.is_file()]
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    with pytest.raises(PrwError) as refused:
        await store.get(key_of(HTML))
    assert refused.value.code is Code.DIGEST_MISMATCH
