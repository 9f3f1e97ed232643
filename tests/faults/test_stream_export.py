"""Exports of accepted state: exact as of their position, whole or not at all, held by a lease (T12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prw.errors import Code, PrwError
from prw_base.faults import arm, disarm
from prw_resolver.export.model import ExportStatus
from prw_resolver.export.objects import Folder
from prw_resolver.export.service import Exports, Told
from prw_resolver.stream.model import Stream
from prw_resolver.stream.retained import Lease
from prw_resolver.stream.retention import Retention
from tests.faults.exporting import MINE, RIVAL, Exporting, exporting
from tests.faults.retaining import STREAM, Trusted
from tests.support.waiting import until

WHOLE = {"applied_revision": 12, "item_revision": 4, "mapping_revision": 4, "merchant": 4}


@pytest.fixture
async def made(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Exporting]:
    """A stream of twelve positions."""
    async with exporting(resolver_database, tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def unarmed() -> Iterator[None]:
    """No fault outlives its test."""
    yield
    disarm()


def counts(told: Told) -> dict[str, int]:
    """How many rows there are of each kind."""
    kinds = sorted({one.kind for one in told.objects})
    return {kind: sum(one.rows for one in told.objects if one.kind == kind) for kind in kinds}


async def code_of(call: Awaitable[Any]) -> Code:
    """The code with which a call is refused."""
    with pytest.raises(PrwError) as refused:
        await call
    return refused.value.code


async def test_t12_an_export_is_whole_and_holds_what_comes_after_it(made: Exporting) -> None:
    """Manifest with W, counts and checksums; the pin moved to W, so that what is older may go and nothing younger."""
    told = await made.made()
    assert (told.export.status, told.export.position) == (ExportStatus.READY, 12)
    assert (told.export.expected, counts(told), len(told.objects)) == (12, WHOLE, 12)
    for kind in WHOLE:
        for rows in await made.rows(told, kind):
            assert rows.startswith(b"PGCOPY\n\xff\r\n\0")
    await made.held.fill(1, start=40)
    assert await made.held.pruner.round(asyncio.Event()) == 12


class Busy(Retention):
    """Retention control that commits another change whenever the exporter renews its lease."""

    def __init__(self, made: Exporting) -> None:
        super().__init__(made.held.rooms.database, Trusted())
        self._made, self._at = made, 50

    async def renew(self, stream: Stream, lease_id: str, principal: str, pin: int = 0) -> Lease:
        """Commit, then renew."""
        self._at += 1
        await self._made.held.fill(1, start=self._at)
        return await super().renew(stream, lease_id, principal, pin)


async def test_t12_changes_while_it_is_written_are_not_in_it(made: Exporting) -> None:
    """The state is of one position, although each statement has a snapshot of its own.

    Fails where what is newest is read instead of what was newest at the position.
    """
    feed, folder = made.held.rooms.feed, Folder(made.folder)
    exports = Exports(made.held.rooms.database, feed, Busy(made), folder)
    told = await Exporting(made.held, exports, made.folder).made()
    assert (told.export.position, counts(told)) == (12, WHOLE)
    assert await feed.cursor(STREAM) > 20


async def test_t12_the_same_token_is_the_same_export(made: Exporting) -> None:
    """Also asked for twice at once; the lease of the second call is given back."""
    first, second = await asyncio.gather(*(made.exports.create(MINE, "t1") for _ in range(2)))
    assert first.export.export_id == second.export.export_id
    held = "select count(*) from resolver.stream_lease where ended_at is null"
    assert made.held.one(held) == 1


async def test_t12_a_transfer_is_taken_up_at_any_byte(made: Exporting) -> None:
    """From the offset that the reader has reached; beyond the end is told by the field."""
    told = await made.made()
    one = told.objects[0]
    whole = await made.stored(told.export.export_id, one.name)
    for offset in (1, one.bytes - 1, one.bytes):
        assert await made.stored(told.export.export_id, one.name, offset) == whole[offset:]
    beyond = made.stored(told.export.export_id, one.name, one.bytes + 1)
    assert await code_of(beyond) is Code.VALIDATION_FAILED
    assert await code_of(made.stored(told.export.export_id, "merchant-99999")) is Code.NOT_FOUND


async def test_t12_an_export_is_its_creators_alone(made: Exporting) -> None:
    """Another client of the tenant neither sees nor reads it."""
    told = await made.made()
    assert await code_of(made.exports.tell(RIVAL, told.export.export_id)) is Code.NOT_FOUND
    name = told.objects[0].name
    read = made.exports.read(RIVAL, told.export.export_id, name, 0)
    assert await code_of(anext(read)) is Code.NOT_FOUND
    renewal = made.exports.renew(RIVAL, 1, told.export.lease_id, 0)
    assert await code_of(renewal) is Code.NOT_FOUND


@pytest.mark.parametrize(
    "point", ["export.before_objects", "export.after_object", "export.before_ready"]
)
async def test_t12_an_export_that_breaks_leaves_nothing_and_another_is_made(
    made: Exporting, point: str
) -> None:
    """Never half an export: it has failed, its files are gone, and a new token gives a whole one."""
    arm(f"{point}=raise")
    broken = await made.made()
    assert (broken.export.status, broken.export.code) == (ExportStatus.FAILED, "UNAVAILABLE")
    assert not list(made.folder.glob("*/*"))
    assert counts(await made.made("t2")) == WHOLE


async def test_t12_an_exporter_that_went_silent_is_told_as_failed(made: Exporting) -> None:
    """It was killed: nothing is written for it any more, and it blocks no other export."""
    told = await made.made()
    made.held.one(
        "update resolver.export set status = 'running', touched_at = now() - interval '1 h' returning 1"
    )
    seen = await made.exports.tell(MINE, told.export.export_id)
    assert (seen.export.status, seen.export.code) == (ExportStatus.FAILED, "UNAVAILABLE")
    assert (await made.made("t2")).export.status is ExportStatus.READY


async def test_t12_a_lease_that_runs_out_while_it_is_written_ends_it(made: Exporting) -> None:
    """What comes after the position may be gone, so the export is worth nothing: LEASE_EXPIRED."""

    class Late(Retention):
        async def renew(self, stream: Stream, lease_id: str, principal: str, pin: int = 0) -> Lease:
            over = "select bool_and(expires_at < clock_timestamp()) from resolver.stream_lease"
            await until(lambda: made.held.one(over))
            return await super().renew(stream, lease_id, principal, pin)

    database, brief = made.held.rooms.database, timedelta(milliseconds=200)
    late = Late(database, Trusted(), lifetime=brief)
    exports = Exports(database, made.held.rooms.feed, late, Folder(made.folder))
    told = await Exporting(made.held, exports, made.folder).made()
    assert (told.export.status, told.export.code) == (ExportStatus.FAILED, "LEASE_EXPIRED")


async def test_t12_an_epoch_that_ends_while_it_is_written_ends_it(made: Exporting) -> None:
    """Its history is fenced: EPOCH_FENCED, and nothing of it is ready."""

    class Fenced(Retention):
        async def renew(self, stream: Stream, lease_id: str, principal: str, pin: int = 0) -> Lease:
            made.held.one("update resolver.stream_cursor set status = 'fenced' returning 1")
            return await super().renew(stream, lease_id, principal, pin)

    database = made.held.rooms.database
    exports = Exports(
        database, made.held.rooms.feed, Fenced(database, Trusted()), Folder(made.folder)
    )
    told = await Exporting(made.held, exports, made.folder).made()
    assert (told.export.status, told.export.code) == (ExportStatus.FAILED, "EPOCH_FENCED")


async def test_t12_old_exports_go_and_those_that_are_held_stay(made: Exporting) -> None:
    """The last one is kept though nobody holds it; one that is gone is told so: EXPORT_EXPIRED."""
    first = await made.made("t1")
    second = await made.made("t2")
    assert len(list(made.folder.iterdir())) == 2
    for told in (first, second):
        await made.exports.release(MINE, 1, told.export.lease_id)
    await made.made("t3")
    kept = {path.name for path in made.folder.iterdir()}
    assert first.export.export_id not in kept
    assert second.export.export_id in kept
    assert await code_of(made.exports.tell(MINE, first.export.export_id)) is Code.EXPORT_EXPIRED
    read = made.stored(second.export.export_id, second.objects[0].name)
    assert await code_of(read) is Code.EXPORT_EXPIRED


async def test_t12_a_missing_file_is_told_and_no_other_is_sent(made: Exporting) -> None:
    """EXPORT_EXPIRED: the reader asks for a new export."""
    told = await made.made()
    one = told.objects[0]
    (made.folder / told.export.export_id / f"{one.name}.zst").unlink()
    assert await code_of(made.stored(told.export.export_id, one.name)) is Code.EXPORT_EXPIRED


async def test_an_export_of_an_empty_stream_is_ready_and_empty(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """Position 0 and no objects."""
    async with exporting(resolver_database, tmp_path, changes=0) as empty:
        told = await empty.made()
        assert (told.export.status, told.export.position) == (ExportStatus.READY, 0)
        assert told.objects == ()
        assert told.export.digest
