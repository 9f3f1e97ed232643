"""`ReviewService`: cases and decisions for persons (if_review_read, if_review_decision)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prw.errors import Code, PrwError
from prw.operator.v1 import review_service_pb2 as pb
from prw.operator.v1 import review_service_pb2_grpc
from prw_base.canonical import canonical_json
from prw_base.paging import make_token, read_token
from prw_base.principal import Kind, Principal, current
from prw_base.scope import Scope
from prw_base.server.rpc import Context
from prw_resolver.review.decide import Request
from prw_resolver.review.model import Case, CaseKind, CaseStatus, HistoryEntry
from prw_resolver.review.service import Review
from prw_resolver.review.store import BEGINNING
from prw_resolver.stream.model import Action
from prw_resolver.vocabulary.model import Quote

DEFAULT_PAGE = 100


class ReviewServicer(review_service_pb2_grpc.ReviewServiceServicer):
    """Translates; tenant, catalogue and person come from the token."""

    def __init__(self, review: Review) -> None:
        self._review = review

    async def ListCases(
        self, request: pb.ListCasesRequest, context: Context
    ) -> pb.ListCasesResponse:
        """List cases, oldest first."""
        limit, query = request.page_size or DEFAULT_PAGE, _query(request)
        cases = await self._review.cases(
            _scope(current()),
            status=CaseStatus(_word(pb.CaseStatus.Name(request.status), "CASE_STATUS_"))
            if request.status
            else None,
            kind=CaseKind(_word(pb.CaseKind.Name(request.kind), "CASE_KIND_"))
            if request.kind
            else None,
            after=_after(request.page_token, query),
            limit=limit + 1,
        )
        token = _token(cases[limit - 1], query) if len(cases) > limit else ""
        return pb.ListCasesResponse(
            cases=[_summary(case) for case in cases[:limit]], next_page_token=token
        )

    async def GetCase(self, request: pb.GetCaseRequest, context: Context) -> pb.GetCaseResponse:
        """Read one case whole."""
        case, history = await self._review.case(_scope(current()), request.case_id)
        return pb.GetCaseResponse(case=_whole(case, history))

    async def Decide(self, request: pb.DecideRequest, context: Context) -> pb.DecideResponse:
        """Record a person's decision."""
        principal = current()
        if principal.kind is not Kind.PERSON:
            raise PrwError(Code.FORBIDDEN, "only a person decides")
        decided = await self._review.decide(_scope(principal), principal.subject, _request(request))
        return pb.DecideResponse(
            decision_id=decided.decision_id,
            case_id=decided.case_id,
            case_revision=decided.case_revision,
            event_ids=decided.event_ids,
            replayed=decided.replayed,
        )


def _scope(principal: Principal) -> Scope:
    return Scope(principal.tenant_id, principal.catalog_id)


def _word(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()


def _request(request: pb.DecideRequest) -> Request:
    return Request(
        case_id=request.case_id,
        expected_revision=request.expected_revision,
        action=Action(_word(pb.DecisionAction.Name(request.action), "DECISION_ACTION_")),
        rationale=request.rationale,
        idempotency_key=request.idempotency_key,
        corrections=dict(request.corrections),
        create_item=request.create_item,
        map_to=request.map_to if request.HasField("map_to") else None,
    )


def _summary(case: Case) -> pb.CaseSummary:
    summary = pb.CaseSummary(
        case_id=case.case_id,
        kind=pb.CaseKind.Value(f"CASE_KIND_{case.kind.value.upper()}"),
        status=pb.CaseStatus.Value(f"CASE_STATUS_{case.status.value.upper()}"),
        revision=case.revision,
        source_id=case.source_id,
        listing_key=case.listing_key,
        title=case.title,
        reason=case.reason,
        candidates=len(case.candidates),
    )
    summary.opened_at.FromDatetime(case.opened_at)
    return summary


def _whole(case: Case, history: tuple[HistoryEntry, ...]) -> pb.Case:
    return pb.Case(
        summary=_summary(case),
        proposal=[
            pb.AttributeValue(
                attribute=held.attribute, value=held.value, unit=held.unit, basis=held.basis.value
            )
            for held in case.record.values
        ],
        candidates=[
            pb.Candidate(
                item_id=held.item_id,
                title=held.title,
                score=held.score,
                agree=held.agree,
                disagree=held.disagree,
                missing=held.missing,
            )
            for held in case.candidates
        ],
        evidence=[_evidence(quote) for quote in case.evidence],
        history=[_entry(entry) for entry in history],
    )


def _evidence(quote: Quote) -> pb.Evidence:
    selector: Any = quote.selector
    return pb.Evidence(
        capture_id=quote.capture_id,
        part_role=quote.part_role,
        sha256=quote.sha256,
        attribute=quote.attribute,
        quote=quote.quote,
        selector=canonical_json(selector).decode(),
    )


def _entry(entry: HistoryEntry) -> pb.HistoryEntry:
    stored = pb.HistoryEntry(
        decision_id=entry.decision_id,
        case_revision=entry.case_revision,
        action=pb.DecisionAction.Value(f"DECISION_ACTION_{entry.action.upper()}"),
        actor_kind=entry.actor_kind,
        actor_id=entry.actor_id,
        rationale=entry.rationale,
    )
    stored.decided_at.FromDatetime(entry.decided_at)
    return stored


def _query(request: pb.ListCasesRequest) -> str:
    return f"cases:{request.status}:{request.kind}"


def _token(case: Case, query: str) -> str:
    return make_token((case.opened_at.isoformat(), case.case_id), query)


def _after(token: str, query: str) -> tuple[datetime, str]:
    held = read_token(token, query, parts=2)
    if held is None:
        return BEGINNING
    try:
        return datetime.fromisoformat(held[0]).astimezone(UTC), held[1]
    except (ValueError, OverflowError) as error:
        message = "this is no page token of ListCases"
        raise PrwError(Code.VALIDATION_FAILED, message, field="page_token") from error
