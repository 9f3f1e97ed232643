"""Follow the stream for ever: from durable progress, in batches, reported after each commit.

Every session starts from what the database says, so a restart of either side, of PostgreSQL or of
this process loses and repeats nothing in effect. Only what asking again cannot change ends it.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
import structlog

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.apply.model import ContentChanged, Delivery
from prw_product.apply.service import Applied, Applier, GenerationMoved, Live, open_live
from prw_product.follow.client import ChangeClient, Connect
from prw_product.follow.decode import decode
from prw_product.follow.model import (
    FINAL,
    Gap,
    GapOpen,
    Page,
    Standing,
    Waits,
    check_stream,
    explain,
    find_gaps,
    greatest,
)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """What a follower is told; ``batch_size`` is the changes of one message, 1 to 1000."""

    scope: Scope
    batch_size: int = 500
    waits: Waits = Waits()


class Follower:
    """Follows one stream into the generation that serves; ``standing`` says how it goes."""

    def __init__(self, database: Database, connect: Connect, settings: FollowSettings) -> None:
        self._database = database
        self._connect = connect
        self._settings = settings
        self.standing = Standing()

    async def run(self) -> None:
        """Follow until cancelled. Raises PrwError, told to an operator, where that is no use."""
        while True:
            try:
                await self._run_session()
            except GenerationMoved:
                _log.info("another generation serves now")
            except (PrwError, GapOpen, psycopg.OperationalError) as error:
                await self._wait_after(error)
            except ContentChanged as error:
                raise self._stop(PrwError(Code.CURSOR_AHEAD, str(error))) from error
            finally:
                self.standing.connected = False

    async def _run_session(self) -> None:
        async with self._connect() as client:
            try:
                await self._follow(client)
            except PrwError as error:
                if error.code is Code.EPOCH_FENCED:
                    await self._ask(client, error)
                raise

    async def _ask(self, client: ChangeClient, error: PrwError) -> None:
        """Stop only on the control plane's word; raises a retryable error where it knows better."""
        told = await client.read_epoch()
        if told.history_epoch == self.standing.epoch:
            raise PrwError(
                Code.UNAVAILABLE, f"fenced, but the control plane says otherwise: {error.message}"
            ) from error

    async def _follow(self, client: ChangeClient) -> None:
        registered = await client.register()
        check_stream(registered.stream, self._settings.scope, None)
        epoch = registered.stream.history_epoch
        live = await open_live(self._database, self._settings.scope, epoch)
        self.standing.epoch = live.generation.history_epoch
        check_stream(registered.stream, self._settings.scope, self.standing.epoch)
        applier = Applier(self._database, decode, live.generation)
        session = _Session(client, applier, self._settings, self.standing, registered.reported)
        self._begin(live)
        await session.run(live.progress)

    def _begin(self, live: Live) -> None:
        self.standing.progress = live.progress
        self.standing.connected = True
        self.standing.since = datetime.now(UTC)
        _log.info("following", generation=live.generation.number, progress=live.progress)

    async def _wait_after(self, error: Exception) -> None:
        if isinstance(error, PrwError) and error.code in FINAL:
            raise self._stop(error) from error
        self.standing.failures += 1
        wait = self._settings.waits.choose(self.standing.failures)
        _log.warning("following again soon", error=str(error), seconds=wait.total_seconds())
        await asyncio.sleep(wait.total_seconds())

    def _stop(self, error: PrwError) -> PrwError:
        self.standing.stopped = explain(error, self.standing.progress)
        _log.error("following stopped", code=error.code.value, reason=self.standing.stopped.message)
        return self.standing.stopped


class _Session:
    """One connection's worth of following."""

    def __init__(
        self,
        client: ChangeClient,
        applier: Applier,
        settings: FollowSettings,
        standing: Standing,
        reported: int,
    ) -> None:
        self._client = client
        self._applier = applier
        self._epoch = applier.generation.history_epoch
        self._size = settings.batch_size
        self._standing = standing
        self._reported = reported

    async def run(self, progress: int) -> None:
        """Follow from ``progress`` until the connection or a rule ends it, with an exception."""
        # A report that was lost is made up for here.
        await self._report(progress)
        expected = progress + 1
        async with aclosing(self._client.stream(self._epoch, progress, self._size)) as pages:
            async for page in pages:
                self._standing.failures = 0
                self._standing.cursor = page.cursor
                if page.deliveries:
                    expected = await self._take(page, expected)

    async def _take(self, page: Page, expected: int) -> int:
        await self._apply(page.deliveries)
        for gap in find_gaps(expected, (d.position for d in page.deliveries)):
            await self._fill(gap)
        return max(expected, greatest(page.deliveries) + 1)

    async def _fill(self, gap: Gap) -> None:
        """Fetch what is missing; raises GapOpen where the server does not have it now."""
        after = gap.first - 1
        while after < gap.last:
            page = await self._client.list_changes(self._epoch, after, self._size)
            if page.deliveries:
                await self._apply(page.deliveries)
            if not page.deliveries or find_gaps(after + 1, (d.position for d in page.deliveries)):
                raise GapOpen(gap)
            after = greatest(page.deliveries)

    async def _apply(self, deliveries: tuple[Delivery, ...]) -> None:
        applied = await self._applier.apply(deliveries)
        self._standing.progress = max(self._standing.progress, applied.progress)
        await self._report(applied.progress)
        fault("follow.after_report")
        if applied.newest_epoch > self._epoch:
            await self._ask(applied)

    async def _ask(self, applied: Applied) -> None:
        """A change names a newer epoch: only the control plane can tell whether there is one."""
        told = await self._client.read_epoch()
        if told.history_epoch > self._epoch:
            message = f"the epoch is {told.history_epoch} now"
            raise PrwError(Code.EPOCH_FENCED, message)
        _log.error("a change names an epoch that does not exist", epoch=applied.newest_epoch)

    async def _report(self, progress: int) -> None:
        """Report what is committed, and never less than before."""
        if progress > self._reported:
            self._reported = await self._client.report(self._epoch, progress)
