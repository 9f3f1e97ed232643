"""Loads the objects of an export into a shadow generation: checked, in constant memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

import structlog
import zstandard
from psycopg import DataError, IntegrityError

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.server.database import Database
from prw_product.publish import store as publish_store
from prw_product.publish.model import Generation
from prw_product.rebuild import store
from prw_product.rebuild.client import ExportClient
from prw_product.rebuild.lease import Lease
from prw_product.rebuild.model import ExportObject, Manifest, Phase, Progress, Watch, unfit

TIMEOUT = timedelta(minutes=30)
"""Of one statement: a COPY lasts as long as the transfer of its object, and keys are built over all rows."""

_LOADERS = 2
"""Objects that are loaded at once: while one waits for the network, the other is parsed."""

_BROKEN = 8
"""How often the transfer of one object may break."""

_log = structlog.get_logger(__name__)


class Loader:
    """Loads one export."""

    def __init__(
        self, database: Database, client: ExportClient, manifest: Manifest, watch: Watch
    ) -> None:
        self._database = database
        self._client = client
        self._manifest = manifest
        self._watch = watch
        self._loaded = 0

    async def load(self, shadow: Generation, lease: Lease) -> None:
        """Load every object, derive what is public, build the keys.

        Raises DIGEST_MISMATCH for an object that is not what its manifest says, EXPORT_EXPIRED, LEASE_EXPIRED.
        """
        total = self._manifest.rows
        self._watch(Progress(Phase.LOADING, 0, total))
        waiting = sorted(self._manifest.objects, key=lambda one: one.bytes)
        tasks = [asyncio.create_task(self._work(shadow, lease, waiting)) for _ in range(_LOADERS)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._watch(Progress(Phase.FINISHING, total, total))
        await self._finish(shadow)
        lease.check()

    async def _work(self, shadow: Generation, lease: Lease, waiting: list[ExportObject]) -> None:
        """Load what waits, the largest first, until nothing does."""
        while waiting:
            one = waiting.pop()
            await self._load_object(shadow, one)
            fault("rebuild.after_object")
            lease.check()
            self._loaded += one.rows
            self._watch(Progress(Phase.LOADING, self._loaded, self._manifest.rows))

    async def _load_object(self, shadow: Generation, one: ExportObject) -> None:
        tenant = shadow.scope.tenant_id
        try:
            async with self._database.transaction(tenant, TIMEOUT) as conn:
                await publish_store.enter(conn, shadow)
                async with store.copy(conn, one.kind) as copy, aclosing(self._rows(one)) as rows:
                    async for chunk in rows:
                        await copy.write(chunk)
        except (zstandard.ZstdError, DataError, IntegrityError) as error:
            raise _damaged(one, str(error).splitlines()[0]) from error

    async def _rows(self, one: ExportObject) -> AsyncGenerator[bytes, None]:
        """The rows of an object. Raises DIGEST_MISMATCH at its end, so that nothing of it is kept."""
        digest, received = hashlib.sha256(), 0
        opened = zstandard.ZstdDecompressor().decompressobj()
        async with aclosing(self._stored(one)) as stored:
            async for chunk in stored:
                received += len(chunk)
                digest.update(chunk)
                yield opened.decompress(chunk)
        if (received, digest.hexdigest()) != (one.bytes, one.sha256):
            raise _damaged(one, f"{received} bytes came with another checksum")

    async def _stored(self, one: ExportObject) -> AsyncGenerator[bytes, None]:
        """The stored bytes, taken up where a connection broke."""
        received, broken = 0, 0
        while received < one.bytes:
            before = received
            try:
                async for chunk in self._client.read(self._manifest.export_id, one.name, received):
                    received += len(chunk)
                    yield chunk
            except PrwError as error:
                broken += 1
                if not error.retryable or broken == _BROKEN:
                    raise
                _log.warning("a transfer broke", object=one.name, at=received, error=str(error))
                continue
            if received == before:
                return

    async def _finish(self, shadow: Generation) -> None:
        async with self._database.transaction(shadow.scope.tenant_id, TIMEOUT) as conn:
            await store.tell(conn, shadow, Phase.FINISHING)
            await publish_store.enter(conn, shadow)
            if await store.has_foreign_rows(conn, shadow.scope):
                raise PrwError(
                    Code.TENANT_SCOPE_DENIED, "the export holds another catalogue's rows"
                )
            try:
                await store.derive(conn)
                await store.finish_shadow(conn, shadow)
            except (DataError, IntegrityError) as error:
                raise unfit(str(error).splitlines()[0]) from error
        fault("rebuild.after_keys")


def _damaged(one: ExportObject, reason: str) -> PrwError:
    return PrwError(Code.DIGEST_MISMATCH, f"object {one.name} is damaged: {reason}")
