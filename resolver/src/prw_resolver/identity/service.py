"""Identifying records, and identifying again what waited for a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from prw.errors import Code, PrwError
from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_resolver.catalog import store as catalog_store
from prw_resolver.catalog.acceptance import Held, record_listing_id, record_merchant_id
from prw_resolver.catalog.model import ListingMapping
from prw_resolver.catalog.service import MOVED
from prw_resolver.identity import store
from prw_resolver.identity.change import Command, build
from prw_resolver.identity.model import Known, decide
from prw_resolver.identity.retraction import Absence, Mapped, ask, record_id
from prw_resolver.review import store as review_store
from prw_resolver.review.model import OPEN
from prw_resolver.stream.committer import Committer
from prw_resolver.stream.model import Change, Outcome, Wake
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord

TRIES = 10
"""How often a record is looked up again where its stream moved on; each time somebody else made progress."""


class Identifier:
    """Decides records one at a time: look up, decide, commit against what was looked up, again where it moved."""

    def __init__(self, database: Database, committer: Committer) -> None:
        self._database = database
        self._committer = committer

    async def identify(
        self, record: NormalisedRecord, vocabulary: Vocabulary, *, job_id: str, last: bool
    ) -> Outcome:
        """Decide a record of a job; the last one's change carries the stage's inbox row.

        Done again after a crash it gives its former answer. Raises PrwError UNAVAILABLE where the stream moves too
        fast or cannot be reached; the job may be tried again.
        """
        command = Command(f"{job_id}:{record.record_id}", inbox_job_id=job_id if last else None)
        return await self._decide(record, vocabulary, command)

    async def reconsider(self, scope: Scope, vocabulary: Vocabulary, limit: int = 100) -> int:
        """Identify again the cases that a new key may answer; returns how many were looked at."""
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            woken = await review_store.woken(conn, scope, limit)
        for wake in woken:
            await self._reconsider(scope, vocabulary, wake)
        return len(woken)

    async def absent(
        self, absence: Absence, vocabulary: Vocabulary, *, job_id: str
    ) -> tuple[Outcome, ...]:
        """Ask about every listing that was accepted from a target which its source no longer has.

        The stage's inbox row is a change of its own after them, also where there was nothing to ask. Safe to be done
        again; raises PrwError as `identify` does.
        """
        scope = absence.scope
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            gone = await catalog_store.mappings_of_target(
                conn, scope, absence.source_id, absence.native_record_id
            )
        outcomes = [await self._absent(absence, held, vocabulary, job_id) for held in gone]
        done = Change(job_id, scope.tenant_id, scope.catalog_id, job_id, inbox_job_id=job_id)
        await self._committer.commit(done)
        return tuple(outcomes)

    async def _absent(
        self, absence: Absence, mapping: ListingMapping, vocabulary: Vocabulary, job_id: str
    ) -> Outcome:
        command_id = f"{job_id}:{record_id(mapping)}"

        async def look() -> Change:
            mapped = await self._mapped(absence.scope, mapping)
            return ask(absence, mapped, vocabulary, command_id)

        return await self._commit(look, f"the absence of listing {mapping.listing_id}")

    async def _mapped(self, scope: Scope, mapping: ListingMapping) -> Mapped:
        listing = mapping.listing_id
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            current = await catalog_store.mapping(conn, scope, listing) or mapping
            items = await catalog_store.items(conn, scope, [current.item_id])
            return Mapped(
                mapping=current,
                evidence=await catalog_store.mapping_evidence(conn, scope, listing),
                item=items[current.item_id],
                observation=await catalog_store.observation(conn, scope, listing),
                case=await review_store.open_case(conn, scope, listing),
                settled=await review_store.settled(conn, scope, listing, retraction=True),
            )

    async def _reconsider(self, scope: Scope, vocabulary: Vocabulary, wake: Wake) -> None:
        async with self._database.transaction(scope.tenant_id) as conn:
            case = await review_store.case(conn, scope, wake.case_id)
            if case is None or case.status not in OPEN:
                await review_store.unwake(conn, scope, wake)
                return
        command = Command(f"wake:{wake.case_id}:{case.revision}:{wake.touched}", woken=wake)
        await self._decide(case.record, vocabulary, command)

    async def _decide(
        self, record: NormalisedRecord, vocabulary: Vocabulary, command: Command
    ) -> Outcome:
        async def look() -> Change:
            known, held = await self._look_up(record, vocabulary)
            return build(record, decide(record, known), known, held, command)

        return await self._commit(look, f"record {record.record_id}")

    async def _commit(self, look: Callable[[], Awaitable[Change]], what: str) -> Outcome:
        """Commit the change that is right for what is seen now, and look again where that has moved meanwhile."""
        for _ in range(TRIES):
            try:
                committed = await self._committer.commit(await look())
            except PrwError as error:
                if error.code not in MOVED:
                    raise
                continue
            return Outcome(str(committed.answer["outcome"]))
        message = f"{what} could not be decided: its stream moves too fast"
        raise PrwError(Code.UNAVAILABLE, message)

    async def _look_up(
        self, record: NormalisedRecord, vocabulary: Vocabulary
    ) -> tuple[Known, Held]:
        scope = Scope(record.tenant_id, record.catalog_id)
        async with self._database.transaction(record.tenant_id, read_only=True) as conn:
            held = await self._held(conn, scope, record)
            owners = await catalog_store.owners(conn, scope, record.keys)
            mapped = () if held.mapping is None else (held.mapping.item_id,)
            known = Known(
                owners=owners,
                items=await catalog_store.items(conn, scope, {*owners.values(), *mapped}),
                mapping=held.mapping,
                observation=held.observation,
                case=await review_store.open_case(conn, scope, record_listing_id(record)),
                settled=await review_store.settled(conn, scope, record_listing_id(record)),
                trusted=await store.trusted(conn, scope, record.source_id),
                vocabulary=vocabulary,
            )
        return known, held

    @staticmethod
    async def _held(conn: Connection, scope: Scope, record: NormalisedRecord) -> Held:
        listing, merchant = record_listing_id(record), record_merchant_id(record)
        return Held(
            mapping=await catalog_store.mapping(conn, scope, listing),
            merchant=None
            if merchant is None
            else await catalog_store.merchant(conn, scope, merchant),
            observation=await catalog_store.observation(conn, scope, listing),
        )
