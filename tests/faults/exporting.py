"""An export of a stream with changes, and what its objects hold."""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import zstandard

from prw_resolver.export.model import ExportStatus
from prw_resolver.export.objects import Folder
from prw_resolver.export.service import Exports, ExportSettings, Told
from tests.faults.retaining import Retaining, retaining
from tests.resolver.calling import machine
from tests.support.waiting import until

MINE = machine("product-1", "exports:read")
RIVAL = machine("product-2", "exports:read")
TINY = ExportSettings(kept=1, at_once=1, piece=3)


@dataclass(frozen=True, slots=True)
class Exporting:
    """A stream, and exports of it in pieces of three aggregates."""

    held: Retaining
    exports: Exports
    folder: Path

    async def made(self, token: str = "t1") -> Told:
        """An export of that token that is no longer written."""
        told = await self.exports.create(MINE, token)

        async def ended() -> Told | None:
            now = await self.exports.tell(MINE, told.export.export_id)
            return None if now.export.status is ExportStatus.RUNNING else now

        found = await until(ended)
        assert found is not None
        return found

    async def stored(self, export_id: str, name: str, offset: int = 0) -> bytes:
        """The stored bytes of an object as its creator reads them."""
        chunks = [chunk async for chunk in self.exports.read(MINE, export_id, name, offset)]
        return b"".join(chunks)

    async def rows(self, told: Told, kind: str) -> list[bytes]:
        """The bytes of every object of a kind, checked and decompressed."""
        found = []
        for one in told.objects:
            if one.kind == kind:
                stored = await self.stored(told.export.export_id, one.name)
                assert (len(stored), hashlib.sha256(stored).hexdigest()) == (one.bytes, one.sha256)
                reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(stored))
                found.append(reader.read())
        return found


@asynccontextmanager
async def exporting(
    dsns: dict[str, str], folder: Path, changes: int = 4, settings: ExportSettings = TINY
) -> AsyncIterator[Exporting]:
    """So many changes of three facts, and exports of them."""
    async with retaining(dsns, folder / "control", changes) as held:
        files = Folder(folder / "exports")
        exports = Exports(held.rooms.database, held.rooms.feed, held.retention, files, settings)
        yield Exporting(held, exports, folder / "exports")
        await exports.close()
