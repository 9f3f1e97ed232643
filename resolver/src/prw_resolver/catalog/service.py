"""The release policy: what is accepted becomes public by a decision of its own."""

from __future__ import annotations

from dataclasses import dataclass

from prw.errors import Code, PrwError
from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_resolver.catalog import store
from prw_resolver.catalog.model import (
    Item,
    ListingMapping,
    Release,
    ReleasedListing,
    release_fact,
    release_id,
)
from prw_resolver.stream.committer import Committer
from prw_resolver.stream.model import Action, Actor, ActorKind, Change, Decision
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import Quote

POLICY = Actor(ActorKind.RULE, "release_policy@1")
MOVED = frozenset(
    {Code.STALE_FACT_REVISION, Code.KEY_TAKEN, Code.STALE_CASE_REVISION, Code.ITEM_NOT_ACTIVE}
)
"""What was read has moved since: read again and decide again."""


@dataclass(frozen=True, slots=True)
class _Due:
    """One item whose public face may have to change, as it stands now."""

    item: Item
    mappings: tuple[ListingMapping, ...]
    public: Release | None
    evidence: tuple[Quote, ...]
    prior: str
    touched: int


class ReleasePolicy:
    """Publishes every accepted item with all its active listings, as soon as they are accepted."""

    def __init__(self, database: Database, committer: Committer) -> None:
        self._database = database
        self._committer = committer

    async def release_due(self, scope: Scope, vocabulary: Vocabulary, limit: int = 100) -> int:
        """Work through the items that were touched; returns how many were looked at.

        An item that moves meanwhile stays due, so that nothing is lost and nothing stale is published.
        """
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            due = await store.releases_due(conn, scope, limit)
        for item_id, touched in due:
            await self._release(scope, vocabulary, item_id, touched)
        return len(due)

    async def _release(
        self, scope: Scope, vocabulary: Vocabulary, item_id: str, touched: int
    ) -> None:
        async with self._database.transaction(scope.tenant_id) as conn:
            due = await _read(conn, scope, item_id, touched)
            release = compose(due.item, due.mappings, due.public, vocabulary)
            if due.public is not None and due.public.same_content(release):
                await store.release_not_due(conn, scope, item_id, touched)
                return
        try:
            await self._committer.commit(_change(scope, due, release))
        except PrwError as error:
            if error.code not in MOVED:
                raise


def compose(
    item: Item, mappings: tuple[ListingMapping, ...], public: Release | None, vocabulary: Vocabulary
) -> Release:
    """The release of an item with its active listings.

    Its title is that of the first listing, trusted sources' before others and then by listing id, so that the order
    of arrival changes nothing.
    """
    visible = {definition.key for definition in vocabulary.attributes if definition.public}
    return Release(
        item_id=item.item_id,
        item_revision=item.revision,
        revision=1 if public is None else public.revision + 1,
        class_id=item.class_id,
        title=mappings[0].title if mappings else item.title,
        public_fields=tuple(attribute for attribute in item.attributes if attribute.key in visible),
        listings=tuple(
            ReleasedListing(mapping.listing_id, mapping.revision)
            for mapping in sorted(mappings, key=lambda mapping: mapping.listing_id)
        ),
    )


async def _read(conn: Connection, scope: Scope, item_id: str, touched: int) -> _Due:
    item = (await store.items(conn, scope, [item_id]))[item_id]
    mappings = await store.mappings_of_item(conn, scope, item_id)
    public = await store.release(conn, scope, item_id)
    evidence, prior = await store.item_evidence(conn, scope, item_id)
    return _Due(item, mappings, public, evidence, prior, touched)


def _change(scope: Scope, due: _Due, release: Release) -> Change:
    identifier = release_id(scope.tenant_id, scope.catalog_id, release.item_id)
    decision = Decision(
        Action.APPROVE,
        POLICY,
        "everything accepted of an item is published",
        due.evidence,
        prior_decisions=(due.prior,),
    )
    command = f"release:{release.item_id}:{release.revision}"
    return Change(
        command_id=command,
        tenant_id=scope.tenant_id,
        catalog_id=scope.catalog_id,
        digest=command,
        decision=decision,
        facts=(release_fact(identifier, release, due.touched, due.evidence),),
    )
