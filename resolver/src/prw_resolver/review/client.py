"""Calls `ReviewService`, for the command line: answers as plain JSON values, errors typed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc.aio
from google.protobuf import json_format
from google.protobuf.message import Message

from prw.operator.v1 import review_service_pb2 as pb
from prw.operator.v1 import review_service_pb2_grpc
from prw_base.client import AT_A_PROMPT, call
from prw_resolver.review.decide import Request

DEADLINE = timedelta(seconds=10)
PAGE = 200


class ReviewClient:
    """A reviewer's calls over one channel, whose token says who decides."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = review_service_pb2_grpc.ReviewServiceStub(channel)

    async def cases(self, status: str | None, kind: str | None) -> AsyncIterator[dict[str, Any]]:
        """Every case of that status and kind (None for all), oldest first."""
        request = pb.ListCasesRequest(page_size=PAGE)
        if status is not None:
            request.status = pb.CaseStatus.Value(f"CASE_STATUS_{status.upper()}")
        if kind is not None:
            request.kind = pb.CaseKind.Value(f"CASE_KIND_{kind.upper()}")
        while True:
            page = await call(self._stub.ListCases, request, DEADLINE, AT_A_PROMPT)
            for case in page.cases:
                yield _plain(case)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def case(self, case_id: str) -> dict[str, Any]:
        """One case whole."""
        answer = await call(
            self._stub.GetCase, pb.GetCaseRequest(case_id=case_id), DEADLINE, AT_A_PROMPT
        )
        return _plain(answer.case)

    async def decide(self, request: Request) -> dict[str, Any]:
        """Record a decision; a retry after a lost answer gives the same one, by its idempotency key."""
        message = pb.DecideRequest(
            case_id=request.case_id,
            expected_revision=request.expected_revision,
            action=pb.DecisionAction.Value(f"DECISION_ACTION_{request.action.value.upper()}"),
            corrections=dict(request.corrections),
            rationale=request.rationale,
            idempotency_key=request.idempotency_key,
        )
        if request.map_to is not None:
            message.map_to = request.map_to
        elif request.create_item:
            message.create_item = True
        answer = await call(self._stub.Decide, message, DEADLINE, AT_A_PROMPT)
        return _plain(answer)


def _plain(message: Message) -> dict[str, Any]:
    """A message as JSON values under its field names; enums as their short lower-case words."""
    values: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    shortened: dict[str, Any] = _short(values)
    return shortened


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_short(held) for held in value]
    if isinstance(value, str):
        for prefix in ("CASE_STATUS_", "CASE_KIND_", "DECISION_ACTION_"):
            if value.startswith(prefix):
                return value.removeprefix(prefix).lower()
    return value
