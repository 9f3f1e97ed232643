"""Reading a stream: pages, consumers and their progress (AW-03)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from prw.errors import Code, PrwError
from prw_base.server.database import Database
from prw_resolver.stream import store
from prw_resolver.stream.epoch import Epoch
from prw_resolver.stream.failures import refusals_typed
from prw_resolver.stream.model import Page, Stream
from prw_resolver.stream.retained import Consumer, ConsumerStatus, Lease

DEFAULT_PAGE = 500
PAGE_BYTES = 1024 * 1024
"""Event bytes of one page; a message must stay well below what both sides take."""
BEYOND_ANY_POSITION = 2**62


@dataclass(frozen=True, slots=True)
class Registration:
    """What a consumer follows, and how far it has reported."""

    stream: Stream
    reported_position: int
    pruned_through: int


class Feed:
    """The use cases of a stream's readers. Every answer is of the trusted epoch, or EPOCH_FENCED."""

    def __init__(self, database: Database, epoch: Epoch) -> None:
        self._database = database
        self._epoch = epoch

    async def stream(self, tenant_id: str, catalog_id: str) -> Stream:
        """The stream of the trusted epoch, opened where it is not yet there."""
        stream = Stream(tenant_id, catalog_id, self._epoch.current())
        async with self._database.transaction(tenant_id) as conn:
            await store.open_stream(conn, stream)
        return stream

    async def page(self, stream: Stream, after: int, page_size: int = 0) -> Page:
        """Consecutive changes after a position, at most `page_size` (0 for 500).

        Raises EPOCH_FENCED; CURSOR_AHEAD beyond the cursor, where histories have parted; CURSOR_PRUNED below the
        floor, where only a rebuild helps.
        """
        self._epoch.require(stream.history_epoch)
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            page = await store.read_page(conn, stream, after, page_size or DEFAULT_PAGE)
        if page is None:
            raise PrwError(Code.EPOCH_FENCED, f"there is no stream of epoch {stream.history_epoch}")
        if after > page.cursor_position:
            raise PrwError(
                Code.CURSOR_AHEAD, f"position {after} is beyond the cursor, {page.cursor_position}"
            )
        if after < page.pruned_through:
            raise PrwError(
                Code.CURSOR_PRUNED,
                f"position {after} is below {page.pruned_through}, which is pruned",
            )
        return _bounded(page)

    async def cursor(self, stream: Stream) -> int:
        """The last committed position. Raises EPOCH_FENCED."""
        self._epoch.require(stream.history_epoch)
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            page = await store.read_page(conn, stream, BEYOND_ANY_POSITION, 1)
        return 0 if page is None else page.cursor_position

    async def register(
        self, tenant_id: str, catalog_id: str, consumer_id: str, principal: str
    ) -> Registration:
        """Register a consumer under the retention lock, so that no pruning passes it from now on.

        Raises INSTANCE_SCOPE_DENIED where another principal has that name.
        """
        stream = await self.stream(tenant_id, catalog_id)
        with refusals_typed():
            async with self._database.transaction(tenant_id) as conn:
                floor = await store.register_consumer(conn, stream, consumer_id, principal)
                found = await store.find_consumer(conn, stream, consumer_id)
        consumer = self._own(found, consumer_id, principal)
        return Registration(stream, consumer.reported_position, floor)

    async def report(
        self, stream: Stream, consumer_id: str, principal: str, position: int
    ) -> tuple[int, datetime]:
        """Keep what a consumer has durably processed; an older report changes nothing.

        Raises NOT_FOUND for a consumer that is not registered or was retired, EPOCH_FENCED, CURSOR_AHEAD.
        """
        await self.require_consumer(stream, consumer_id, principal)
        with refusals_typed():
            async with self._database.transaction(stream.tenant_id) as conn:
                kept = await store.report_progress(conn, stream, consumer_id, principal, position)
        if kept is None:
            raise _retired(consumer_id)
        return kept

    async def require_consumer(self, stream: Stream, consumer_id: str, principal: str) -> None:
        """Raise NOT_FOUND unless the principal registered that consumer in this epoch, EPOCH_FENCED before all."""
        self._epoch.require(stream.history_epoch)
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            self._own(await store.find_consumer(conn, stream, consumer_id), consumer_id, principal)

    async def require_lease(self, stream: Stream, lease_id: str, principal: str) -> Lease:
        """The lease, which lasts. Raises NOT_FOUND, LEASE_EXPIRED, and EPOCH_FENCED before all."""
        self._epoch.require(stream.history_epoch)
        async with self._database.transaction(stream.tenant_id, read_only=True) as conn:
            found = await store.find_lease(conn, stream, lease_id, principal)
        if found is None:
            raise PrwError(Code.NOT_FOUND, f"there is no lease {lease_id}", field="lease_id")
        lease, lasts = found
        if not lasts:
            raise PrwError(
                Code.LEASE_EXPIRED, f"lease {lease_id} is over: start again from a new export"
            )
        return lease

    @staticmethod
    def _own(consumer: Consumer | None, consumer_id: str, principal: str) -> Consumer:
        if consumer is None:
            raise PrwError(
                Code.NOT_FOUND, f"consumer {consumer_id} is not registered", field="consumer_id"
            )
        if consumer.status == ConsumerStatus.RETIRED:
            raise _retired(consumer_id)
        if consumer.principal != principal:
            raise PrwError(
                Code.INSTANCE_SCOPE_DENIED,
                f"consumer {consumer_id} is another client's",
                field="consumer_id",
            )
        return consumer


def _retired(consumer_id: str) -> PrwError:
    return PrwError(
        Code.NOT_FOUND,
        f"consumer {consumer_id} was retired: an operator lets it return with `prw resolver consumer resume`",
        field="consumer_id",
    )


def _bounded(page: Page) -> Page:
    """The page's first changes that fit into `PAGE_BYTES`; one change at least, however large."""
    held, taken = 0, 0
    for change in page.changes:
        held += len(change.event)
        if held > PAGE_BYTES and taken:
            break
        taken += 1
    return replace(page, changes=page.changes[:taken])
