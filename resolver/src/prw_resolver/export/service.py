"""Asking for an export, reading it, and holding what comes after it (if_projection_bootstrap, ADR-004)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import psycopg
import structlog

from prw.errors import Code, PrwError
from prw_base.ids import new_id
from prw_base.principal import Principal
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_resolver.export import store
from prw_resolver.export.exporter import PIECE, Exporter
from prw_resolver.export.model import (
    SILENCE,
    Export,
    ExportStatus,
    Pinned,
    StateDigest,
    StoredObject,
)
from prw_resolver.export.objects import Folder
from prw_resolver.stream.model import Stream
from prw_resolver.stream.retained import Lease
from prw_resolver.stream.retention import Retention
from prw_resolver.stream.service import Feed

RETRY_AFTER = timedelta(seconds=10)
DIGEST_TIMEOUT = timedelta(minutes=5)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """``kept`` exports of a catalogue keep their files once their leases are over; at most ``at_once`` are written."""

    kept: int = 2
    at_once: int = 2
    piece: int = PIECE


@dataclass(frozen=True, slots=True)
class Told:
    """An export with the objects that it has so far."""

    scope: Scope
    export: Export
    objects: tuple[StoredObject, ...]


class Exports:
    """The use cases of a projection that is built anew; an export is its creator's alone."""

    def __init__(
        self,
        database: Database,
        feed: Feed,
        retention: Retention,
        folder: Folder,
        settings: ExportSettings | None = None,
    ) -> None:
        self._database = database
        self._feed = feed
        self._retention = retention
        self._folder = folder
        self._settings = settings or ExportSettings()
        self._exporter = Exporter(database, retention, folder, self._settings.piece)
        self._running: set[asyncio.Task[None]] = set()

    async def create(self, principal: Principal, token: str) -> Told:
        """Begin an export, or tell how the one of that token stands.

        Raises OVERLOADED while too many are written for this catalogue, EPOCH_FENCED.
        """
        scope = _scope(principal)
        known = await self._find(principal, token=token)
        if known is not None:
            return await self._told(scope, known)
        await self._sweep(scope)
        stream = await self._feed.stream(scope.tenant_id, scope.catalog_id)
        lease = await self._retention.grant(stream, principal.subject)
        async with self._database.transaction(scope.tenant_id) as conn:
            await store.insert_export(
                conn, stream, new_id("exp"), principal.subject, token, lease.lease_id
            )
        export = await self._require(principal, token=token)
        if export.lease_id == lease.lease_id:
            self._start(export, stream)
        else:
            # asked for twice at once: the other call's export is the one
            await self._retention.release(stream, lease.lease_id, principal.subject)
        return await self._told(scope, export)

    async def tell(self, principal: Principal, export_id: str) -> Told:
        """How an export stands. Raises NOT_FOUND, EXPORT_EXPIRED."""
        export = await self._require(principal, export_id=export_id)
        if export.status is ExportStatus.EXPIRED:
            raise _expired(export_id)
        return await self._told(_scope(principal), export)

    async def read(
        self, principal: Principal, export_id: str, name: str, offset: int
    ) -> AsyncIterator[bytes]:
        """The stored bytes of an object from an offset. Raises NOT_FOUND, EXPORT_EXPIRED, VALIDATION_FAILED."""
        export = await self._require(principal, export_id=export_id)
        if export.status is not ExportStatus.READY or not export.lease_lasts:
            raise _expired(export_id)
        async with self._database.transaction(principal.tenant_id, read_only=True) as conn:
            held = await store.objects(conn, _scope(principal), export_id)
        found = next((one for one in held if one.name == name), None)
        if found is None:
            raise PrwError(Code.NOT_FOUND, f"the export has no object {name}", field="name")
        if offset > found.bytes:
            raise PrwError(
                Code.VALIDATION_FAILED, f"the object has {found.bytes} bytes", field="offset"
            )
        async for chunk in self._folder.read(export_id, name, offset):
            yield chunk

    async def renew(
        self, principal: Principal, history_epoch: int, lease_id: str, pin: int
    ) -> Lease:
        """Let a lease last on. Raises LEASE_EXPIRED, NOT_FOUND, EPOCH_FENCED."""
        stream = Stream(principal.tenant_id, principal.catalog_id, history_epoch)
        return await self._retention.renew(stream, lease_id, principal.subject, pin)

    async def release(self, principal: Principal, history_epoch: int, lease_id: str) -> None:
        """End a lease. Raises EPOCH_FENCED."""
        stream = Stream(principal.tenant_id, principal.catalog_id, history_epoch)
        await self._retention.release(stream, lease_id, principal.subject)

    async def digest(
        self, principal: Principal, history_epoch: int, position: int
    ) -> list[StateDigest]:
        """The digest of the accepted state as of a position. Raises CURSOR_AHEAD, EPOCH_FENCED."""
        stream = Stream(principal.tenant_id, principal.catalog_id, history_epoch)
        cursor = await self._feed.cursor(stream)
        if position > cursor:
            raise PrwError(Code.CURSOR_AHEAD, f"position {position} is beyond the cursor, {cursor}")
        async with self._database.transaction(
            stream.tenant_id, DIGEST_TIMEOUT, read_only=True
        ) as conn:
            return await store.digest(conn, Pinned(stream, position))

    async def close(self) -> None:
        """Give up what is being written; whoever waits for it asks for another export."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self, export: Export, stream: Stream) -> None:
        task = asyncio.create_task(self._write(export, stream))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _write(self, export: Export, stream: Stream) -> None:
        """Write it to its end; what goes wrong is told by whoever asks how it stands."""
        try:
            position = await self._feed.cursor(stream)
            await self._exporter.write(export, stream, position)
        except PrwError as error:
            await self._fail(export, stream, error.code)
        except asyncio.CancelledError:
            await self._fail(export, stream, Code.UNAVAILABLE)
            raise
        except Exception as error:  # noqa: BLE001  # whoever waits for it has to be told
            log.error("export.failed", export_id=export.export_id, error=str(error))
            await self._fail(export, stream, Code.UNAVAILABLE)

    async def _fail(self, export: Export, stream: Stream, code: Code) -> None:
        log.warning("export.given_up", export_id=export.export_id, code=code.value)
        scope = Scope(stream.tenant_id, stream.catalog_id)
        try:
            async with self._database.transaction(scope.tenant_id) as conn:
                failed = ExportStatus.FAILED
                await store.end_export(conn, scope, export.export_id, failed, code=code.value)
        except psycopg.Error as error:
            # Nobody takes it for ready, and its silence tells the same.
            log.warning("export.not_noted", export_id=export.export_id, error=str(error))
        await self._folder.remove(export.export_id)

    async def _sweep(self, scope: Scope) -> None:
        """Remove the files of exports that nobody can read any more, but for the last few that were ready.

        Raises OVERLOADED where too many are being written.
        """
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            known = await store.list_exports(conn, scope)
        running = [one for one in known if _is_written(one)]
        if len(running) >= self._settings.at_once:
            raise PrwError(
                Code.OVERLOADED, "enough exports are being written", retry_after=RETRY_AFTER
            )
        ready = [one for one in known if one.status is ExportStatus.READY]
        kept = {one.export_id for one in ready[: self._settings.kept]}
        for one in known:
            if one not in running and not one.lease_lasts and one.export_id not in kept:
                await self._expire(scope, one)

    async def _expire(self, scope: Scope, export: Export) -> None:
        async with self._database.transaction(scope.tenant_id) as conn:
            await store.expire_export(conn, scope, export.export_id)
        await self._folder.remove(export.export_id)

    async def _told(self, scope: Scope, export: Export) -> Told:
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            return Told(scope, _seen(export), await store.objects(conn, scope, export.export_id))

    async def _require(
        self, principal: Principal, *, export_id: str = "", token: str = ""
    ) -> Export:
        found = await self._find(principal, export_id=export_id, token=token)
        if found is None:
            raise PrwError(Code.NOT_FOUND, f"there is no export {export_id}", field="export_id")
        return found

    async def _find(
        self, principal: Principal, *, export_id: str = "", token: str = ""
    ) -> Export | None:
        async with self._database.transaction(principal.tenant_id, read_only=True) as conn:
            return await store.find_export(
                conn, _scope(principal), principal.subject, export_id=export_id, token=token
            )


def _scope(principal: Principal) -> Scope:
    return Scope(principal.tenant_id, principal.catalog_id)


def _is_written(export: Export) -> bool:
    return export.status is ExportStatus.RUNNING and export.silent < SILENCE


def _seen(export: Export) -> Export:
    """As its reader is told: one whose exporter is gone has failed, and it may be gone without a word."""
    if export.status is ExportStatus.RUNNING and not _is_written(export):
        return replace(export, status=ExportStatus.FAILED, code=Code.UNAVAILABLE.value)
    return export


def _expired(export_id: str) -> PrwError:
    return PrwError(Code.EXPORT_EXPIRED, f"export {export_id} is gone: request a new one")
