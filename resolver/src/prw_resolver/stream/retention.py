"""Retention control: leases of rebuilds and the acts of operators, each under the stream's retention lock.

Time is the database's, read after the lock is held; a lease that ran out never comes back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from prw.errors import Code, PrwError
from prw_base.ids import new_id
from prw_base.server.database import Connection, Database
from prw_resolver.stream import store
from prw_resolver.stream.epoch import Epoch
from prw_resolver.stream.failures import refusals_typed
from prw_resolver.stream.model import Stream
from prw_resolver.stream.retained import Consumer, ConsumerAct, Hold, Lease, RetentionEvent

LEASE_LIFETIME = timedelta(minutes=10)
EVENTS_SHOWN = 100


class Retention:
    """What holds a stream's changes. Every answer is of the trusted epoch, or EPOCH_FENCED."""

    def __init__(
        self, database: Database, epoch: Epoch, *, lifetime: timedelta = LEASE_LIFETIME
    ) -> None:
        """`lifetime` is how long a lease lasts from its grant and from each renewal."""
        self._database = database
        self._epoch = epoch
        self._lifetime = lifetime

    async def grant(self, stream: Stream, principal: str) -> Lease:
        """A new lease, pinned at what is pruned already: nothing after it goes while it lasts."""
        async with self._locked(stream) as conn:
            return await store.grant_lease(conn, stream, new_id("lea"), principal, self._lifetime)

    async def renew(self, stream: Stream, lease_id: str, principal: str, pin: int = 0) -> Lease:
        """Let a lease last on, and move its pin forward to `pin` where that is further.

        Raises LEASE_EXPIRED for one that is over, NOT_FOUND for one that this principal does not have.
        """
        async with self._locked(stream) as conn:
            return await store.renew_lease(conn, stream, lease_id, principal, self._lifetime, pin)

    async def release(self, stream: Stream, lease_id: str, principal: str) -> None:
        """End a lease; one that is over, or not this principal's, stays as it is."""
        async with self._locked(stream) as conn:
            await store.release_lease(conn, stream, lease_id, principal)

    async def move_consumer(
        self, stream: Stream, consumer_id: str, act: ConsumerAct, actor: str, reason: str
    ) -> None:
        """Pause, resume or retire a consumer, audited. Raises NOT_FOUND."""
        async with self._locked(stream) as conn:
            found = await store.move_consumer(conn, stream, consumer_id, act, actor, reason)
        if not found:
            raise PrwError(
                Code.NOT_FOUND,
                f"{stream.tenant_id}/{stream.catalog_id} has no consumer {consumer_id} in epoch "
                f"{stream.history_epoch}",
                field="consumer_id",
            )

    async def consumers(self, stream: Stream) -> list[Consumer]:
        """Every consumer, retired ones too."""
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            return await store.consumers(conn, stream)

    async def holds(self, stream: Stream) -> list[Hold]:
        """Who holds back what, the furthest back first."""
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            return await store.holds(conn, stream)

    async def events(self, stream: Stream, most: int = EVENTS_SHOWN) -> list[RetentionEvent]:
        """The last acts on consumers and leases, newest first."""
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            return await store.retention_events(conn, stream, most)

    @asynccontextmanager
    async def _locked(self, stream: Stream) -> AsyncIterator[Connection]:
        """A transaction whose statement takes the retention lock; what that refuses is raised typed."""
        self._epoch.require(stream.history_epoch)
        with refusals_typed():
            async with self._database.transaction(stream.tenant_id) as conn:
                yield conn
