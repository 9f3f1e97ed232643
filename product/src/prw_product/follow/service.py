"""Follow the stream for ever: from durable progress, in batches, reported after each commit.

Every session starts from what the database says, so a restart of either side, of PostgreSQL or of
this process loses and repeats nothing in effect. Only what asking again cannot change ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
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
from prw_product.follow import store
from prw_product.follow.client import ChangeClient, Connect
from prw_product.follow.decode import decode
from prw_product.follow.model import (
    FINAL,
    REBUILDABLE,
    RENEWABLE,
    Condition,
    Gap,
    GapOpen,
    Page,
    Registered,
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
    """What a follower is told; ``batch_size`` is the changes of one message, 1 to 1000.

    ``read_token`` reads the token anew, or is None where it cannot change. A refused token that has
    worked before is waited for until it is another one; one that never has only if ``patient``.
    ``rebuild`` builds the projection anew where following can never go on from what is here; without
    it an operator is asked to.
    """

    scope: Scope
    batch_size: int = 500
    waits: Waits = Waits()
    read_token: Callable[[], str] | None = None
    patient: bool = False
    rebuild: Callable[[], Awaitable[object]] | None = None


class Follower:
    """Follows one stream into the generation that serves; ``standing`` says how it goes."""

    def __init__(self, database: Database, connect: Connect, settings: FollowSettings) -> None:
        self._database = database
        self._connect = connect
        self._settings = settings
        self.standing = Standing()
        self._token: str | None = None

    async def run(self) -> None:
        """Follow until cancelled. Raises PrwError, told to an operator, where that is no use."""
        while True:
            try:
                await self._run_session()
            except GenerationMoved:
                _log.info("another generation serves now")
            except (PrwError, GapOpen, psycopg.Error) as error:
                if not await self._rebuild_after(error):
                    await self._wait_after(error)
            except ContentChanged as error:
                parted = PrwError(Code.CURSOR_AHEAD, str(error))
                if not await self._rebuild_after(parted):
                    raise await self._stop(parted) from error
            finally:
                self.standing.connected = False

    async def _rebuild_after(self, error: Exception) -> bool:
        """Build the projection anew where nothing else helps; True where following may go on from there."""
        rebuild = self._settings.rebuild
        if rebuild is None or not isinstance(error, PrwError) or error.code not in REBUILDABLE:
            return False
        _log.warning("rebuilding", code=error.code.value, reason=error.message)
        try:
            await rebuild()
        except (PrwError, psycopg.Error) as failed:
            if isinstance(failed, PrwError) and failed.code in FINAL:
                _log.error("rebuilding failed", code=failed.code.value, reason=failed.message)
                return False
            await self._wait_after(failed)
        return True

    async def _run_session(self) -> None:
        self._token = self._read_token()
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
        await self._begin(live, registered)
        await session.run(live.progress)

    async def _begin(self, live: Live, registered: Registered) -> None:
        self.standing.progress = live.progress
        self.standing.connected = True
        self.standing.since = datetime.now(UTC)
        self.standing.stopped = None
        _log.info("following", generation=live.generation.number, progress=live.progress)
        if registered.reported > live.progress:
            # Harmless while nothing was pruned; the stream says CURSOR_PRUNED where it was.
            _log.error(
                "this consumer has reported more than is here: a restored database, or two of one name",
                reported=registered.reported,
                progress=live.progress,
            )
        await self._tell(Condition.FOLLOWING)

    async def _wait_after(self, error: Exception) -> None:
        if isinstance(error, PrwError) and error.code in FINAL:
            stopped = await self._stop(error)
            if not self._may_renew(error):
                raise stopped from error
            await self._wait_for_token()
            return
        self.standing.failures += 1
        wait = self._settings.waits.choose(self.standing.failures)
        _log.warning("following again soon", error=str(error), seconds=wait.total_seconds())
        await self._tell(Condition.WAITING, error)
        await asyncio.sleep(wait.total_seconds())

    async def _stop(self, error: PrwError) -> PrwError:
        self.standing.stopped = explain(error, self.standing.progress)
        _log.error("following stopped", code=error.code.value, reason=self.standing.stopped.message)
        await self._tell(Condition.STOPPED, self.standing.stopped)
        return self.standing.stopped

    async def _tell(self, condition: Condition, error: Exception | None = None) -> None:
        """Note for ``status`` how it goes, where the database takes it."""
        said = ("", "") if error is None else (type(error).__name__, str(error))
        if isinstance(error, PrwError):
            said = (error.code.value, error.message)
        try:
            await store.tell_condition(self._database, self._settings.scope, condition, *said)
        except psycopg.Error as lost:
            _log.warning("the database does not take how following goes", error=str(lost))

    def _may_renew(self, error: PrwError) -> bool:
        worked = self.standing.since is not None
        renewable = error.code in RENEWABLE and self._settings.read_token is not None
        return renewable and (worked or self._settings.patient)

    async def _wait_for_token(self) -> None:
        """Until the token is another one: the refused one is not sent again."""
        while True:
            await asyncio.sleep(self._settings.waits.base.total_seconds())
            if self._read_token() not in (None, self._token):
                _log.info("another token is there")
                return

    def _read_token(self) -> str | None:
        try:
            return None if self._settings.read_token is None else self._settings.read_token()
        except PrwError:
            # The call that needs it says so.
            return None


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
                self._standing.cursor = page.cursor
                if page.deliveries:
                    expected = await self._take(page, expected)
                self._standing.failures = 0

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
        """Apply and report; a batch that the database has not the time for is halved."""
        try:
            applied = await self._applier.apply(deliveries)
        except psycopg.errors.QueryCanceled:
            if len(deliveries) == 1:
                raise
            half = len(deliveries) // 2
            await self._apply(deliveries[:half])
            await self._apply(deliveries[half:])
            return
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
