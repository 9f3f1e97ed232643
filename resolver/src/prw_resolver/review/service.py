"""What a reviewer does: list cases, read one, decide it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from prw.errors import Code, PrwError
from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_resolver.catalog import store as catalog_store
from prw_resolver.catalog.acceptance import Held, record_listing_id, record_merchant_id
from prw_resolver.catalog.model import Item, ItemStatus
from prw_resolver.review import store
from prw_resolver.review.correct import correct
from prw_resolver.review.decide import Ground, Request, Ruling, rule
from prw_resolver.review.model import OPEN, Case, CaseKind, CaseStatus, HistoryEntry
from prw_resolver.stream.committer import Committer
from prw_resolver.stream.model import Action, Actor, ActorKind, Committed
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord

FACTS_MOVED = frozenset({Code.STALE_FACT_REVISION, Code.KEY_TAKEN, Code.ITEM_NOT_ACTIVE})
"""The catalogue moved while the decision was written: read again; what truly forbids it is seen then."""

TRIES = 5
DECIDABLE = frozenset({Action.ACCEPT, Action.CORRECT, Action.REJECT, Action.DEFER, Action.RETRACT})

LoadVocabulary = Callable[[Connection, str, str], Awaitable[Vocabulary]]


@dataclass(frozen=True, slots=True)
class Decided:
    """What was recorded."""

    decision_id: str
    case_id: str
    case_revision: int
    event_ids: tuple[str, ...]
    replayed: bool


class Review:
    """The use cases of a tenant's reviewers."""

    def __init__(
        self, database: Database, committer: Committer, vocabularies: LoadVocabulary
    ) -> None:
        self._database = database
        self._committer = committer
        self._vocabularies = vocabularies

    async def cases(
        self,
        scope: Scope,
        *,
        status: CaseStatus | None = None,
        kind: CaseKind | None = None,
        after: tuple[datetime, str] = store.BEGINNING,
        limit: int = 100,
    ) -> list[Case]:
        """Cases of the catalogue, oldest first."""
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            return await store.cases(
                conn, scope, status=status, kind=kind, after=after, limit=limit
            )

    async def case(self, scope: Scope, case_id: str) -> tuple[Case, tuple[HistoryEntry, ...]]:
        """One case with its history. Raises NOT_FOUND, TENANT_SCOPE_DENIED."""
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            case = await self._case(conn, scope, case_id)
            return case, await store.history(conn, scope, case_id)

    async def decide(self, scope: Scope, person: str, request: Request) -> Decided:
        """Record a person's decision with its facts.

        Raises STALE_CASE_REVISION where the case moved since the person saw it, KEY_TAKEN where another item owns a
        key of a new one, ITEM_NOT_ACTIVE, VALIDATION_FAILED, IDEMPOTENCY_CONFLICT, NOT_FOUND, TENANT_SCOPE_DENIED.
        """
        command_id = f"decide:{person}:{request.idempotency_key}"
        former = await self._former(scope, command_id, request)
        if former is not None:
            return former
        _require_sound(request)
        try:
            return await self._ruled(scope, person, command_id, request)
        except PrwError:
            # the very same request may have been answered while this one was looked into
            former = await self._former(scope, command_id, request)
            if former is None:
                raise
            return former

    async def _former(self, scope: Scope, command_id: str, request: Request) -> Decided | None:
        former = await self._committer.former_answer(
            scope.tenant_id, scope.catalog_id, command_id, request.digest()
        )
        return None if former is None else _decided(former)

    async def _ruled(self, scope: Scope, person: str, command_id: str, request: Request) -> Decided:
        for _ in range(TRIES):
            ground = await self._ground(scope, request)
            ruling = Ruling(command_id, request.digest(), Actor(ActorKind.PERSON, person))
            change = rule(request, ground, ruling)
            try:
                return _decided(await self._committer.commit(change))
            except PrwError as error:
                if error.code not in FACTS_MOVED:
                    raise
        raise PrwError(Code.UNAVAILABLE, "the catalogue moves too fast; decide again")

    async def _case(self, conn: Connection, scope: Scope, case_id: str) -> Case:
        case = await store.case(conn, scope, case_id)
        if case is not None:
            return case
        if await store.is_elsewhere(conn, scope, case_id):
            raise PrwError(
                Code.TENANT_SCOPE_DENIED, "this case is another tenant's", field="case_id"
            )
        raise PrwError(Code.NOT_FOUND, f"there is no case {case_id}", field="case_id")

    async def _ground(self, scope: Scope, request: Request) -> Ground:
        """Everything that the decision rests on, read together."""
        async with self._database.transaction(scope.tenant_id, read_only=True) as conn:
            case = await self._case(conn, scope, request.case_id)
            _require_fresh(case, request)
            vocabulary = await self._vocabularies(conn, scope.tenant_id, scope.catalog_id)
            record = correct(case.record, request.corrections, vocabulary)
            return Ground(
                case=case,
                record=record,
                item=await _destination(conn, scope, request),
                owners=await catalog_store.owners(conn, scope, record.keys),
                held=await _held(conn, scope, record),
                vocabulary=vocabulary,
            )


async def _destination(conn: Connection, scope: Scope, request: Request) -> Item | None:
    if request.map_to is None:
        return None
    item = (await catalog_store.items(conn, scope, [request.map_to])).get(request.map_to)
    if item is None:
        raise PrwError(Code.NOT_FOUND, f"there is no item {request.map_to}", field="map_to")
    if item.status is not ItemStatus.ACTIVE:
        raise PrwError(
            Code.ITEM_NOT_ACTIVE, f"item {item.item_id} is {item.status}", field="map_to"
        )
    return item


async def _held(conn: Connection, scope: Scope, record: NormalisedRecord) -> Held:
    listing, merchant = record_listing_id(record), record_merchant_id(record)
    mapping = await catalog_store.mapping(conn, scope, listing)
    if merchant is None and mapping is not None:
        merchant = mapping.merchant_id
    return Held(
        mapping=mapping,
        merchant=None if merchant is None else await catalog_store.merchant(conn, scope, merchant),
        observation=await catalog_store.observation(conn, scope, listing),
    )


def _require_sound(request: Request) -> None:
    """Refuse what no case could make right."""
    takes = request.action in (Action.ACCEPT, Action.CORRECT)
    if request.action not in DECIDABLE:
        taken = ", ".join(sorted(DECIDABLE))
        raise PrwError(
            Code.VALIDATION_FAILED,
            f"{request.action} is no decision of a case; take one of {taken}",
            field="action",
        )
    if takes and not request.create_item and request.map_to is None:
        raise PrwError(Code.VALIDATION_FAILED, "say create_item or map_to", field="destination")
    if not takes and (request.create_item or request.map_to is not None):
        raise PrwError(
            Code.VALIDATION_FAILED, f"{request.action} takes no destination", field="destination"
        )
    if (request.action is Action.CORRECT) != bool(request.corrections):
        raise PrwError(
            Code.VALIDATION_FAILED, "corrections go with the action correct", field="corrections"
        )


def _require_fresh(case: Case, request: Request) -> None:
    if case.revision != request.expected_revision:
        raise PrwError(
            Code.STALE_CASE_REVISION,
            f"the case is at revision {case.revision}, not {request.expected_revision}: read it again",
            field="expected_revision",
        )
    if case.status not in OPEN:
        raise PrwError(
            Code.VALIDATION_FAILED, f"the case is {case.status} already", field="case_id"
        )
    if (request.action is Action.RETRACT) != (
        case.kind is CaseKind.RETRACTION
    ) and request.action not in (
        Action.DEFER,
        Action.REJECT,
    ):
        raise PrwError(
            Code.VALIDATION_FAILED,
            f"{request.action} does not answer a {case.kind} case",
            field="action",
        )


def _decided(committed: Committed) -> Decided:
    answer = committed.answer
    events = answer["event_ids"]
    if not isinstance(events, list):
        raise TypeError("a decision's answer lists its events")
    return Decided(
        decision_id=str(answer["decision_id"]),
        case_id=str(answer["case_id"]),
        case_revision=int(str(answer["case_revision"])),
        event_ids=tuple(str(event) for event in events),
        replayed=committed.replayed,
    )
