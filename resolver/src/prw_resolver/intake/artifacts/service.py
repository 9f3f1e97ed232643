"""Many artifacts over one stream (if_artifact_upload): declared ahead, stored side by side, answered in order.

While one task reads the stream, a second looks up what was declared and a third concludes what was sent. So lookups
and rows of many artifacts share a transaction, and the flushes of one artifact overlap the bytes of the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.principal import Principal
from prw_base.server.database import Connection
from prw_resolver.access.service import source_scope
from prw_resolver.intake.artifacts import store
from prw_resolver.intake.artifacts.incoming import Incoming
from prw_resolver.intake.artifacts.model import Answer, Chunk, Declaration, Sent, Standing
from prw_resolver.intake.service import Intake, machine
from prw_resolver.intake.uploads import check_size
from prw_resolver.objects.model import ObjectKey, ObjectMeta

PENDING_LIMIT: Final = 1000
"""Artifacts of one stream that may await their bytes."""
LOOKUPS_AHEAD: Final = 256
"""Declarations that wait to be looked up; beyond them the stream is not read."""
STORED_AT_ONCE: Final = 8
"""Artifacts of one stream that are being stored; with `CHUNKS_AHEAD` it bounds the bytes held in memory."""
ANSWERS_AHEAD: Final = 64
"""Answers that wait for the caller to read them."""

_T = TypeVar("_T")


async def store_many(
    intake: Intake, principal: Principal, sent: AsyncIterator[Sent], draining: asyncio.Event
) -> AsyncGenerator[Answer, None]:
    """Store what comes, and say of each artifact where it stands.

    VALIDATION_FAILED for a caller that breaks the order of things; UNAVAILABLE where nothing comes for
    `Intake.put_limit`, where the bytes of one artifact take longer, and once `draining` is set. What was sent whole
    before is stored and answered first.
    """
    machine(principal)
    work = _Work(intake, principal, draining)
    working = asyncio.create_task(work.run(sent))
    try:
        while (answer := await work.answers.get()) is not None:
            yield answer
        await working
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


class _Work:
    """The state of one stream."""

    def __init__(self, intake: Intake, principal: Principal, draining: asyncio.Event) -> None:
        self._intake = intake
        self._principal = principal
        self._draining = draining
        self.answers: asyncio.Queue[Answer | None] = asyncio.Queue(ANSWERS_AHEAD)
        self._declared: asyncio.Queue[Declaration | None] = asyncio.Queue()
        self._lookups = asyncio.Semaphore(LOOKUPS_AHEAD)
        self._sent: asyncio.Queue[Incoming | None] = asyncio.Queue()
        self._stores = asyncio.Semaphore(STORED_AT_ONCE)
        self._highest = 0
        self._pending: dict[int, ObjectMeta] = {}
        self._receiving: Incoming | None = None
        self._until = 0.0
        self._timer = asyncio.timeout(None)

    async def run(self, sent: AsyncIterator[Sent]) -> None:
        """Work until the caller ends the stream; raises whatever else ended it, once all is answered that can be."""
        try:
            ended: BaseException | None = await self._together(sent)
        except BaseExceptionGroup as failed:
            ended = _first(failed)
        await self.answers.put(None)
        if ended is not None:
            raise ended

    async def _together(self, sent: AsyncIterator[Sent]) -> PrwError | None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_up())
            tasks.create_task(self._conclude())
            watch = tasks.create_task(self._watch_drain())
            ended = await self._read(sent, tasks)
            watch.cancel()
            self._declared.put_nowait(None)
            self._sent.put_nowait(None)
        return ended

    # What comes in

    async def _read(self, sent: AsyncIterator[Sent], tasks: asyncio.TaskGroup) -> PrwError | None:
        """Take what comes, to the end of the stream; the error that ends it otherwise."""
        try:
            while await self._step(sent, tasks):
                pass
        except PrwError as ended:
            return ended
        finally:
            if self._receiving is not None:
                self._receiving.drop()
        if self._receiving is not None:
            return _invalid("the stream ended in the midst of an artifact", "chunk.last")
        return None

    async def _step(self, sent: AsyncIterator[Sent], tasks: asyncio.TaskGroup) -> bool:
        if self._draining.is_set() and self._receiving is None:
            raise _ends()
        try:
            async with asyncio.timeout_at(self._deadline()) as self._timer:
                message = await anext(sent, None)
                if isinstance(message, Declaration):
                    await self._declare(message)
                elif message is not None:
                    await self._take(message, tasks)
        except TimeoutError as late:
            raise self._late() from late
        return message is not None

    def _deadline(self) -> float:
        if self._receiving is not None:
            return self._until
        return asyncio.get_running_loop().time() + self._intake.put_limit.total_seconds()

    async def _watch_drain(self) -> None:
        await self._draining.wait()
        if self._receiving is None:
            # Too late where the time has run out at this very moment.
            with suppress(RuntimeError):
                self._timer.reschedule(asyncio.get_running_loop().time())

    def _late(self) -> PrwError:
        if self._draining.is_set() and self._receiving is None:
            return _ends()
        what = (
            "nothing came" if self._receiving is None else "the bytes of an artifact did not come"
        )
        return PrwError(Code.UNAVAILABLE, f"{what} within {self._intake.put_limit}")

    async def _declare(self, declaration: Declaration) -> None:
        if declaration.sequence <= self._highest:
            raise _invalid("is not greater than the one before", "declaration.sequence")
        if len(self._pending) >= PENDING_LIMIT:
            raise _invalid(f"{PENDING_LIMIT} artifacts await their bytes already", "declaration")
        self._highest = declaration.sequence
        await self._lookups.acquire()
        self._declared.put_nowait(declaration)

    async def _take(self, chunk: Chunk, tasks: asyncio.TaskGroup) -> None:
        incoming = self._receiving or await self._begin(chunk.sequence, tasks)
        if incoming.sequence != chunk.sequence:
            raise _invalid(f"artifact {incoming.sequence} is not whole yet", "chunk.sequence")
        await incoming.feed(chunk.data)
        if chunk.last:
            await incoming.end()
            self._receiving = None
            self._sent.put_nowait(incoming)

    async def _begin(self, sequence: int, tasks: asyncio.TaskGroup) -> Incoming:
        meta = self._pending.pop(sequence, None)
        if meta is None:
            raise _invalid(f"no bytes are awaited for artifact {sequence}", "chunk.sequence")
        await self._stores.acquire()
        incoming = Incoming(sequence, meta)
        key = ObjectKey(self._principal.tenant_id, meta.sha256)
        incoming.task = tasks.create_task(incoming.keep(self._intake.objects, key))
        incoming.task.add_done_callback(lambda _: self._stores.release())
        self._receiving = incoming
        limit = self._intake.put_limit.total_seconds()
        self._until = asyncio.get_running_loop().time() + limit
        return incoming

    # What goes out

    async def _look_up(self) -> None:
        """Answer what was declared, in that order."""
        ended = False
        while not ended:
            declared, ended = await _some(self._declared)
            for answer in await self._standings(declared):
                await self.answers.put(answer)
                self._lookups.release()

    async def _standings(self, declared: Sequence[Declaration]) -> list[Answer]:
        principal, digests = self._principal, [one.meta.sha256 for one in declared]

        async def find(conn: Connection) -> list[Answer]:
            held = await store.find(conn, principal.tenant_id, digests)
            return [await self._standing(conn, one, held.get(one.meta.sha256)) for one in declared]

        if not declared:
            return []
        answers = await self._intake.db.run(find, principal.tenant_id, read_only=True)
        metas = {one.sequence: one.meta for one in declared}
        pending = [one.sequence for one in answers if one.standing is Standing.PENDING]
        self._pending.update((sequence, metas[sequence]) for sequence in pending)
        return answers

    async def _standing(
        self, conn: Connection, declaration: Declaration, held: ObjectMeta | None
    ) -> Answer:
        try:
            await self._check(conn, declaration, held)
        except PrwError as refused:
            return Answer(declaration.sequence, Standing.REFUSED, refused)
        standing = Standing.PENDING if held is None else Standing.STORED
        return Answer(declaration.sequence, standing)

    async def _check(
        self, conn: Connection, declaration: Declaration, held: ObjectMeta | None
    ) -> None:
        if not declaration.source_id:
            raise PrwError(Code.ATTRIBUTION_DENIED, "name the source", field="source_id")
        await source_scope(conn, self._principal, declaration.source_id)
        check_size(self._intake, declaration.meta.size)
        if held is not None:
            declaration.meta.same_or_conflict(held)

    async def _conclude(self) -> None:
        """Answer what was sent, in that order, once it is stored or refused."""
        ended = False
        while not ended:
            sent, ended = await _some(self._sent)
            for incoming in sent:
                await incoming.finished.wait()
            await self._record([one.meta for one in sent if one.stored])
            for incoming in sent:
                standing = Standing.STORED if incoming.stored else Standing.REFUSED
                await self.answers.put(Answer(incoming.sequence, standing, incoming.error))

    async def _record(self, metas: Sequence[ObjectMeta]) -> None:
        if not metas:
            return
        tenant_id = self._principal.tenant_id

        async def add(conn: Connection) -> None:
            await store.add(conn, tenant_id, metas)
            fault("intake.before_artifact_rows")

        await self._intake.db.run(add, tenant_id)
        fault("intake.after_artifact_rows")


async def _some(queue: asyncio.Queue[_T | None]) -> tuple[list[_T], bool]:
    """Whatever is there, at least one; True with it once None has come, which is the last."""
    taken = [await queue.get()]
    while not queue.empty():
        taken.append(queue.get_nowait())
    return [one for one in taken if one is not None], taken[-1] is None


def _first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure that ended the others."""
    first = failed.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _ends() -> PrwError:
    return PrwError(Code.UNAVAILABLE, "the server ends; open another stream")


def _invalid(message: str, field: str) -> PrwError:
    return PrwError(Code.VALIDATION_FAILED, message, field=field)
