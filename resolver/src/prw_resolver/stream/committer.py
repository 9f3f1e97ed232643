"""The writer of a stream: callers' changes are coalesced into one transaction under the cursor's lock.

The lock serialises a stream and each transaction's flush must end before the next begins, so whatever has queued up
while one group commits becomes the next group. A group that fails is halved until the member at fault fails alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
import structlog

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.server.database import Database
from prw_resolver.stream import store
from prw_resolver.stream.encode import encode_command
from prw_resolver.stream.epoch import Epoch
from prw_resolver.stream.failures import FATE_OF_ALL, refused
from prw_resolver.stream.model import Change, Committed, Stream
from prw_resolver.stream.signal import Signal

GROUP_LIMIT = 64
"""Changes in one transaction; beyond it the flush is no longer what limits."""

COMMIT_TIMEOUT = timedelta(seconds=30)
"""Never a caller's own deadline: others share the transaction."""

CONNECTION_TRIES = 3
RETRY_AFTER = timedelta(seconds=1)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Waiting:
    change: Change
    command: dict[str, object]
    answer: asyncio.Future[Committed]


@dataclass(slots=True)
class _Lane:
    """One stream's queue, and the task that drains it while there is something in it."""

    stream: Stream
    queue: deque[_Waiting] = field(default_factory=deque)
    drain: asyncio.Task[None] | None = None


class Committer:
    """Commits changes, each exactly once whatever the connection does."""

    def __init__(
        self, database: Database, epoch: Epoch, signal: Signal, *, queue_limit: int = 1024
    ) -> None:
        self._database = database
        self._epoch = epoch
        self._signal = signal
        self._queue_limit = queue_limit
        self._lanes: dict[tuple[str, str], _Lane] = {}

    async def commit(self, change: Change) -> Committed:
        """Make a change durable and return its positions.

        Raises PrwError: STALE_CASE_REVISION, STALE_FACT_REVISION, KEY_TAKEN, ITEM_NOT_ACTIVE, EPOCH_FENCED,
        IDEMPOTENCY_CONFLICT; OVERLOADED beyond the queue's bound; UNAVAILABLE where the database cannot be reached,
        in which case the same change may be committed again without harm.
        """
        lane = await self._lane(change.tenant_id, change.catalog_id)
        if len(lane.queue) >= self._queue_limit:
            raise PrwError(
                Code.OVERLOADED, "too many changes wait for this stream", retry_after=RETRY_AFTER
            )
        answer: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        lane.queue.append(_Waiting(change, encode_command(lane.stream, change), answer))
        if lane.drain is None or lane.drain.done():
            # A context of its own: a caller's deadline must never cut off a group that others share.
            lane.drain = asyncio.create_task(self._drain(lane), context=Context())
        return await asyncio.shield(answer)

    async def former_answer(
        self, tenant_id: str, catalog_id: str, command_id: str, digest: str
    ) -> Committed | None:
        """What the command was answered before, or None. Raises IDEMPOTENCY_CONFLICT for another digest."""
        stream = (await self._lane(tenant_id, catalog_id)).stream
        async with self._database.transaction(tenant_id, read_only=True) as conn:
            former = await store.find_command(conn, stream, command_id)
        if former is not None and former[1] != digest:
            raise PrwError(
                Code.IDEMPOTENCY_CONFLICT,
                "this key was used for another request",
                field="idempotency_key",
            )
        return None if former is None else former[0]

    async def close(self) -> None:
        """Wait until everything queued has its answer."""
        drains = [lane.drain for lane in self._lanes.values() if lane.drain is not None]
        await asyncio.gather(*drains)

    async def _lane(self, tenant_id: str, catalog_id: str) -> _Lane:
        lane = self._lanes.get((tenant_id, catalog_id))
        if lane is None:
            stream = Stream(tenant_id, catalog_id, self._epoch.current())
            await self._open(stream)
            lane = self._lanes.setdefault((tenant_id, catalog_id), _Lane(stream))
        return lane

    async def _open(self, stream: Stream) -> None:
        """Make the stream's rows; done again where the connection died, since doing it twice changes nothing."""
        for attempt in range(1, CONNECTION_TRIES + 1):
            try:
                async with self._database.transaction(stream.tenant_id) as conn:
                    return await store.open_stream(conn, stream)
            except psycopg.OperationalError as error:
                log.warning("open.connection_lost", attempt=attempt, error=type(error).__name__)
        raise _unreachable()

    async def _drain(self, lane: _Lane) -> None:
        while lane.queue:
            group = [lane.queue.popleft() for _ in range(min(GROUP_LIMIT, len(lane.queue)))]
            await self._settle(lane.stream, group)
            self._signal.notify(lane.stream)

    async def _settle(self, stream: Stream, group: Sequence[_Waiting]) -> None:
        """Give every member its answer; bisect a group that fails."""
        try:
            answers = await self._commit(stream, group)
        except Exception as error:  # noqa: BLE001  # else one caller would wait for ever
            await self._settle_failed(stream, group, error)
            return
        for waiting, answer in zip(group, answers, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(answer)

    async def _settle_failed(
        self, stream: Stream, group: Sequence[_Waiting], error: Exception
    ) -> None:
        shared = isinstance(error, PrwError) and error.code in FATE_OF_ALL
        if len(group) > 1 and not shared:
            middle = len(group) // 2
            await self._settle(stream, group[:middle])
            await self._settle(stream, group[middle:])
            return
        for waiting in group:
            if not waiting.answer.done():
                waiting.answer.set_exception(error)

    async def _commit(self, stream: Stream, group: Sequence[_Waiting]) -> list[Committed]:
        """One transaction; asked again by command id where the connection died around COMMIT."""
        for attempt in range(1, CONNECTION_TRIES + 1):
            try:
                return await self._transact(stream, group)
            except psycopg.Error as error:
                typed = refused(error)
                if typed is not None:
                    raise typed from error
                if not isinstance(error, psycopg.OperationalError):
                    raise
                log.warning("commit.connection_lost", attempt=attempt, error=type(error).__name__)
        raise _unreachable()

    async def _transact(self, stream: Stream, group: Sequence[_Waiting]) -> list[Committed]:
        self._epoch.require(stream.history_epoch)
        fault("stream.before_commit")
        async with self._database.transaction(stream.tenant_id, timeout=COMMIT_TIMEOUT) as conn:
            answers = await store.commit(conn, stream, [waiting.command for waiting in group])
            fault("stream.in_transaction")
            self._epoch.require(stream.history_epoch)
        fault("stream.after_commit")
        return answers


def _unreachable() -> PrwError:
    return PrwError(Code.UNAVAILABLE, "the database cannot be reached", retry_after=RETRY_AFTER)
