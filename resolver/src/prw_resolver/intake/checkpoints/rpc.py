"""Checkpoints over gRPC: translate, call one use case, translate back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from prw.collector.v1 import checkpoint_service_pb2 as pb
from prw.collector.v1 import checkpoint_service_pb2_grpc as pb_grpc
from prw.errors import Code, PrwError
from prw_base.principal import current
from prw_base.server.rpc import Context
from prw_resolver.intake.checkpoints import service
from prw_resolver.intake.model import Checkpoint, CheckpointKey
from prw_resolver.intake.rpc import moment, timestamp
from prw_resolver.intake.service import Intake

_OUTCOME: Final = {
    pb.DEFERRED_OUTCOME_RETRY_AT: "retry_at",
    pb.DEFERRED_OUTCOME_POISON: "poison",
}
_LONGEST: Final = 3 * 1024 * 1024
"""Bytes of a step: what is persisted must also fit into the one message that gives it back."""
_BY_NAME: Final = {name: value for value, name in _OUTCOME.items()}


class CheckpointServicer(pb_grpc.CheckpointServiceServicer):
    """How far sources' plans have come."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def GetCheckpoint(
        self, request: pb.GetCheckpointRequest, context: Context
    ) -> pb.GetCheckpointResponse:
        found = await service.get(self._intake, current(), _to_key(request.key))
        return pb.GetCheckpointResponse(checkpoint=_from_checkpoint(found))

    async def AdvanceCheckpoint(
        self, request: pb.AdvanceCheckpointRequest, context: Context
    ) -> pb.AdvanceCheckpointResponse:
        if request.ByteSize() > _LONGEST:
            raise PrwError(
                Code.VALIDATION_FAILED,
                f"state and deferred items have more than {_LONGEST} bytes; take some of them up first",
                field="deferred",
            )
        following = Checkpoint(
            _to_key(request.key),
            state=request.state,
            deferred=[_to_deferred(item, n) for n, item in enumerate(request.deferred)],
        )
        expected = request.expected_revision
        advanced = await service.advance(self._intake, current(), expected, following)
        return pb.AdvanceCheckpointResponse(checkpoint=_from_checkpoint(advanced))


def _to_key(key: pb.CheckpointKey) -> CheckpointKey:
    return CheckpointKey(key.source_id, key.adapter, key.partition)


def _to_deferred(item: pb.DeferredItem, index: int) -> dict[str, object]:
    waits = item.outcome == pb.DEFERRED_OUTCOME_RETRY_AT
    if waits != item.HasField("retry_at"):
        raise PrwError(
            Code.VALIDATION_FAILED,
            "is given for an item that is tried again, and for no other",
            field=f"deferred[{index}].retry_at",
        )
    at = moment(item.retry_at, f"deferred[{index}].retry_at").isoformat() if waits else None
    return {
        "native_record_id": item.native_record_id,
        "url": item.url,
        "outcome": _OUTCOME[item.outcome],
        "code": item.code,
        "error": item.error,
        "attempts": item.attempts,
        "retry_at": at,
    }


def _from_checkpoint(value: Checkpoint) -> pb.Checkpoint:
    key = value.key
    return pb.Checkpoint(
        key=pb.CheckpointKey(source_id=key.source_id, adapter=key.adapter, partition=key.partition),
        revision=value.revision,
        state=value.state,
        deferred=[_from_deferred(item) for item in value.deferred],
        updated_at=None if value.updated_at is None else timestamp(value.updated_at),
    )


def _from_deferred(item: Mapping[str, Any]) -> pb.DeferredItem:
    at = item["retry_at"]
    return pb.DeferredItem(
        native_record_id=item["native_record_id"],
        url=item["url"],
        outcome=_BY_NAME[item["outcome"]],
        code=item["code"],
        error=item["error"],
        attempts=item["attempts"],
        retry_at=None if at is None else timestamp(datetime.fromisoformat(at)),
    )
