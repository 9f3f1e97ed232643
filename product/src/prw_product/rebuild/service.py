"""Rebuild the projection from an export, beside the one that serves, and cut over in one transaction (ADR-004).

The shadow has tables, a cursor and a lease of its own and never moves the live ones. Whatever ends a rebuild before
the cutover leaves the serving generation as it was, and the next rebuild takes away what is left over.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
import structlog

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.ids import new_id
from prw_base.scope import Scope
from prw_base.server.database import CONSUMER_TIMEOUT, Connection, Database
from prw_product.apply import store as apply_store
from prw_product.apply.service import Applier, open_live
from prw_product.follow.decode import decode
from prw_product.follow.model import greatest
from prw_product.publish import store as publish_store
from prw_product.publish.model import Generation
from prw_product.rebuild import store
from prw_product.rebuild.client import Connect, ExportClient
from prw_product.rebuild.lease import Lease, holding
from prw_product.rebuild.loading import TIMEOUT, Loader
from prw_product.rebuild.model import (
    ExportStatus,
    Manifest,
    Phase,
    Progress,
    Rebuilt,
    Watch,
    check_manifest,
    differing,
    unresolved,
)

_AGAIN = frozenset({Code.LEASE_EXPIRED, Code.EXPORT_EXPIRED, Code.CURSOR_PRUNED, Code.EPOCH_FENCED})
"""A new export helps."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RebuildSettings:
    """``page_size`` is the changes of one page, 1 to 1000; a rebuild starts from at most ``exports`` exports.

    ``poll`` is waited between two questions; ``readers`` is how long transactions that may still read the old
    generation are waited for before its tables go. What is not dropped then, the next rebuild drops.
    """

    scope: Scope
    page_size: int = 500
    exports: int = 3
    poll: timedelta = timedelta(milliseconds=250)
    readers: timedelta = timedelta(seconds=30)


def unwatched(_: Progress) -> None:
    """Watch nothing."""


class Rebuilder:
    """Rebuilds one catalogue's projection."""

    def __init__(
        self,
        database: Database,
        connect: Connect,
        settings: RebuildSettings,
        watch: Watch = unwatched,
    ) -> None:
        self._database = database
        self._connect = connect
        self._settings = settings
        self._watch = watch

    async def run(self) -> Rebuilt:
        """Rebuild, and return what serves now.

        Raises REBUILD_IN_PROGRESS while another rebuild of the catalogue is at work, VALIDATION_FAILED where a change
        cannot be applied or waits for another that is missing, and what the resolver refuses. Then nothing has changed.
        """
        scope = self._settings.scope
        async with self._database.connection() as turn:
            if not await store.take_turn(turn, scope):
                message = f"{scope.tenant_id}/{scope.catalog_id} is being rebuilt"
                raise PrwError(Code.REBUILD_IN_PROGRESS, message)
            try:
                return await self._try()
            finally:
                with suppress(psycopg.Error):
                    await store.give_turn(turn, scope)

    async def _try(self) -> Rebuilt:
        await self._clean()
        for attempt in range(1, self._settings.exports + 1):
            try:
                async with self._connect() as client:
                    return await self._rebuild(client)
            except PrwError as error:
                if error.code not in _AGAIN or attempt == self._settings.exports:
                    raise
                _log.warning("starting again from a new export", code=error.code.value)
        raise AssertionError("unreachable")

    async def _rebuild(self, client: ExportClient) -> Rebuilt:
        manifest = await self._export(client)
        async with holding(client, manifest) as lease:
            shadow = await self._make_shadow(manifest)
            try:
                fault("rebuild.after_shadow")
                await Loader(self._database, client, manifest, self._watch).load(shadow, lease)
                served_at, former = await self._catch_up(client, manifest, shadow, lease)
            except BaseException as error:
                await self._abort(shadow, error)
                raise
            await self._report(client, shadow, served_at)
        await self._drop_former(former)
        self._watch(Progress(Phase.SERVED, served_at, served_at))
        epoch, number = manifest.history_epoch, shadow.number
        at = (manifest.position, served_at)
        return Rebuilt(number, epoch, manifest.export_id, *at, manifest.rows)

    async def _export(self, client: ExportClient) -> Manifest:
        """Ask for an export, and wait until it is ready."""
        manifest = await client.create(new_id("rebuild"))
        try:
            return await self._await_ready(client, manifest)
        except BaseException:
            with suppress(PrwError):
                await client.release(manifest.history_epoch, manifest.lease_id)
            raise

    async def _await_ready(self, client: ExportClient, manifest: Manifest) -> Manifest:
        check_manifest(manifest, self._settings.scope)
        while manifest.status is ExportStatus.RUNNING:
            self._watch(Progress(Phase.EXPORTING, manifest.rows, manifest.expected))
            await asyncio.sleep(self._settings.poll.total_seconds())
            manifest = await client.read_manifest(manifest.export_id)
            check_manifest(manifest, self._settings.scope)
        return manifest

    async def _make_shadow(self, manifest: Manifest) -> Generation:
        # a catalogue that nothing serves yet begins with an empty generation, so that there is a pointer to swap
        await open_live(self._database, manifest.scope, manifest.history_epoch)
        async with self._database.transaction(manifest.scope.tenant_id, CONSUMER_TIMEOUT) as conn:
            return await store.put_shadow(conn, manifest)

    async def _catch_up(
        self, client: ExportClient, manifest: Manifest, shadow: Generation, lease: Lease
    ) -> tuple[int, Generation | None]:
        """Apply the tail until the shadow is not behind, then cut over; returns H, and what served before."""
        await self._tell(shadow, Phase.CATCHING_UP)
        applier = Applier(self._database, decode, shadow, serves=False)
        reached = least = await self._apply_tail(client, applier, lease, manifest.position, 0)
        await self._compare(client, shadow, reached)
        while True:
            fault("rebuild.before_cutover")
            # What was asked for and did not come is not in the stream: the live one is ahead of it.
            behind, former = await self._cut_over(shadow, max(reached, least), reached)
            if behind is None:
                fault("rebuild.after_cutover")
                return reached, former
            least = behind
            reached = await self._apply_tail(client, applier, lease, reached, least)

    async def _compare(self, client: ExportClient, shadow: Generation, reached: int) -> None:
        """Hold the shadow against what was accepted, as of what it has reached. Raises DIGEST_MISMATCH."""
        async with self._database.transaction(shadow.scope.tenant_id, TIMEOUT) as conn:
            await publish_store.enter(conn, shadow)
            ours = await store.digests(conn, shadow.scope)
        theirs = await client.read_digests(shadow.history_epoch, reached)
        if wrong := differing(ours, theirs):
            message = (
                f"what was rebuilt is not what was accepted: {', '.join(wrong)} differ at {reached}"
            )
            raise PrwError(Code.DIGEST_MISMATCH, message)

    async def _apply_tail(
        self, client: ExportClient, applier: Applier, lease: Lease, after: int, least: int
    ) -> int:
        """Apply every change after a position through the cursor, and at least through ``least``."""
        generation = applier.generation
        while True:
            lease.check()
            epoch, size = generation.history_epoch, self._settings.page_size
            page = await client.list_changes(epoch, lease.lease_id, after, size)
            self._watch(Progress(Phase.CATCHING_UP, after, max(page.cursor, least)))
            if not page.deliveries:
                if page.cursor < least:
                    # Only a history that was taken back ends before what was applied from it.
                    _log.error("what serves is ahead of its stream", progress=least, cursor=after)
                if after >= min(least, page.cursor):
                    return after
                await asyncio.sleep(self._settings.poll.total_seconds())
                continue
            applied = await applier.apply(page.deliveries)
            fault("rebuild.after_batch")
            if applied.progress < greatest(page.deliveries):
                raise await self._held(generation, applied.progress)
            after = lease.pin = applied.progress

    async def _held(self, shadow: Generation, progress: int) -> PrwError:
        """Why the shadow does not go on: a change that cannot be applied, or one that it waits for (T7)."""
        async with self._database.transaction(shadow.scope.tenant_id, read_only=True) as conn:
            await publish_store.enter(conn, shadow)
            hold = await apply_store.find_hold(conn, shadow)
        return unresolved(progress, str(hold))

    async def _cut_over(
        self, shadow: Generation, allowed: int, reached: int
    ) -> tuple[int | None, Generation | None]:
        """Swap the serving generation and its cursor, unless the live one is further: its progress (L) is returned.

        It may have gone through ``allowed``: what the shadow has reached, unless the stream itself ends before.

        The live applier is paused by its own lock for the length of this transaction, and finds the pointer moved.
        """
        async with self._database.transaction(shadow.scope.tenant_id, CONSUMER_TIMEOUT) as conn:
            live = await publish_store.find_serving(conn, shadow.scope)
            behind = None if live is None else await self._live_lead(conn, shadow, live, allowed)
            if behind is not None:
                return behind, live
            if await store.lock_pointer(conn, shadow.scope) != live:
                return reached, live
            if live is not None:
                await store.retire(conn, live)
            if not await store.let_serve(conn, shadow):
                message = "another rebuild has taken this one's turn"
                raise PrwError(Code.REBUILD_IN_PROGRESS, message)
            await store.tell(conn, shadow, Phase.SERVED, served_position=reached)
        return None, live

    async def _live_lead(
        self, conn: Connection, shadow: Generation, live: Generation, reached: int
    ) -> int | None:
        """The live progress where it is beyond what the shadow has reached; another epoch's says nothing."""
        progress = await store.lock_live_progress(conn, live)
        if live.history_epoch > shadow.history_epoch:
            raise PrwError(Code.EPOCH_FENCED, f"epoch {live.history_epoch} is served already")
        same = live.history_epoch == shadow.history_epoch
        return progress if same and progress > reached else None

    async def _report(self, client: ExportClient, shadow: Generation, served_at: int) -> None:
        """Let the consumer hold what the lease held, before the lease is given back.

        Where that fails the follower does it when it begins; what it still holds is older, and so holds more.
        """
        try:
            await client.consumer.register()
            await client.consumer.report(shadow.history_epoch, served_at)
        except PrwError as error:
            _log.warning("not reported", code=error.code.value, reason=error.message)

    async def _drop_former(self, former: Generation | None) -> None:
        """Drop the generation that served before, once nobody can be reading it."""
        if former is None:
            return
        try:
            await self._drop_unread(former, self._settings.readers)
        except (TimeoutError, psycopg.Error) as error:
            # The next rebuild does it.
            _log.warning("the former generation is kept for now", reason=repr(error))

    async def _drop_unread(self, retired: Generation, patience: timedelta) -> None:
        """Drop what served before, once no transaction is open that may have read the pointer of then.

        The moment is read now, after the commit that moved the pointer: a time noted within that transaction would
        miss whoever read the pointer between the note and the commit. Raises TimeoutError.
        """
        async with self._database.connection() as conn:
            moment = await store.read_clock(conn)
        async with asyncio.timeout(patience.total_seconds()):
            await self._unread(moment)
        await self._drop(retired)

    async def _unread(self, moment: datetime) -> None:
        """Wait until no transaction is open that began before the moment."""
        while True:
            async with self._database.connection() as conn:
                if not await store.has_older_readers(conn, moment):
                    return
            await asyncio.sleep(self._settings.poll.total_seconds())

    async def _clean(self) -> None:
        """Take away what former rebuilds have left: shadows that nobody builds, and what served before."""
        scope = self._settings.scope
        async with self._database.transaction(scope.tenant_id, CONSUMER_TIMEOUT) as conn:
            for left in await store.unserved(conn, scope):
                await store.give_up_shadow(conn, left, "its process ended")
            over = await store.retired(conn, scope)
        for generation in over:
            await self._drop_former(generation)

    async def _abort(self, shadow: Generation, error: BaseException) -> None:
        """Leave nothing of a rebuild that did not come to serve; where that fails the next one does it.

        One whose cutover is committed serves, whatever went wrong after it.
        """
        reason = str(error) or type(error).__name__
        try:
            async with self._database.transaction(shadow.scope.tenant_id) as conn:
                given_up = await store.give_up_shadow(conn, shadow, reason)
            if given_up:
                await self._drop(shadow)
        except psycopg.Error as trouble:
            _log.warning("a shadow is left over", generation=shadow.number, reason=str(trouble))

    async def _drop(self, generation: Generation) -> None:
        tenant = generation.scope.tenant_id
        async with self._database.transaction(tenant, CONSUMER_TIMEOUT) as conn:
            await store.drop(conn, generation)

    async def _tell(self, shadow: Generation, phase: Phase) -> None:
        async with self._database.transaction(shadow.scope.tenant_id) as conn:
            await store.tell(conn, shadow, phase)
