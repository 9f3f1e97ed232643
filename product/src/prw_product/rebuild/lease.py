"""The lease of a rebuild, renewed for as long as the rebuild lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from prw.errors import Code, PrwError
from prw_product.rebuild.client import ExportClient
from prw_product.rebuild.model import Manifest

_SHORTEST = 0.1
"""Seconds between two renewals at least."""

_LOST = frozenset({Code.LEASE_EXPIRED, Code.EPOCH_FENCED, Code.NOT_FOUND, Code.MISSING_SCOPE})

_log = structlog.get_logger(__name__)


class Lease:
    """What holds the changes after ``pin``; the rebuild moves the pin to what it has applied."""

    def __init__(self, client: ExportClient, manifest: Manifest) -> None:
        self._client = client
        self._manifest = manifest
        self._lost: PrwError | None = None
        self.pin = manifest.position

    @property
    def lease_id(self) -> str:
        """Its name."""
        return self._manifest.lease_id

    def check(self) -> None:
        """Raise LEASE_EXPIRED or EPOCH_FENCED where the lease is over: start again from a new export."""
        if self._lost is not None:
            raise self._lost

    async def renew(self) -> None:
        """Renew for ever, three times in a lease's life; trouble that may pass is tried again."""
        wait = max(_SHORTEST, self._manifest.lease_seconds / 3)
        while self._lost is None:
            await asyncio.sleep(wait)
            try:
                await self._client.renew(
                    self._manifest.history_epoch, self._manifest.lease_id, self.pin
                )
            except PrwError as error:
                self._fail(error)

    async def release(self) -> None:
        """End the lease; where that cannot be said, it ends by itself."""
        with suppress(PrwError):
            await self._client.release(self._manifest.history_epoch, self._manifest.lease_id)

    def _fail(self, error: PrwError) -> None:
        _log.warning("the lease could not be renewed", code=error.code.value, reason=error.message)
        if error.code in _LOST:
            self._lost = error


@asynccontextmanager
async def holding(client: ExportClient, manifest: Manifest) -> AsyncIterator[Lease]:
    """The export's lease, renewed within the block and released at its end, however that comes."""
    lease = Lease(client, manifest)
    renewing = asyncio.create_task(lease.renew())
    try:
        yield lease
    finally:
        renewing.cancel()
        await lease.release()
