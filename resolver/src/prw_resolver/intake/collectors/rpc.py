"""Collector instances over gRPC: translate, call one use case, translate back."""

from __future__ import annotations

from typing import Final

from google.protobuf.duration_pb2 import Duration

from prw.collector.v1 import collector_service_pb2 as pb
from prw.collector.v1 import collector_service_pb2_grpc as pb_grpc
from prw_base.principal import current
from prw_base.server.rpc import Context
from prw_resolver.intake import service
from prw_resolver.intake.collectors.service import Heard, hear
from prw_resolver.intake.model import Heartbeat, Instance
from prw_resolver.intake.rpc import egress, from_receipt, moment, region, timestamp
from prw_resolver.intake.service import Intake, Registered

_RUNTIME_KIND: Final = {
    pb.RUNTIME_KIND_UNSPECIFIED: "",
    pb.RUNTIME_KIND_LONG_RUNNING: "long-running",
    pb.RUNTIME_KIND_SCHEDULED: "scheduled",
}
_OUTCOME: Final = {
    pb.RUN_OUTCOME_SUCCEEDED: "succeeded",
    pb.RUN_OUTCOME_PARTIAL: "partial",
    pb.RUN_OUTCOME_FAILED: "failed",
}


class CollectorServicer(pb_grpc.CollectorServiceServicer):
    """Registration and heartbeats of collector instances."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def Register(self, request: pb.RegisterRequest, context: Context) -> pb.RegisterResponse:
        registered = await service.register(self._intake, current(), _to_instance(request))
        return _from_registered(registered)

    async def Heartbeat(
        self, request: pb.HeartbeatRequest, context: Context
    ) -> pb.HeartbeatResponse:
        return _from_heard(await hear(self._intake, current(), _to_heartbeat(request)))


def _to_instance(request: pb.RegisterRequest) -> Instance:
    """The instance that registers."""
    return Instance(
        worker_id=request.worker_id,
        instance_id=request.instance_id,
        version=request.version,
        runtime=request.runtime,
        runtime_kind=_RUNTIME_KIND[request.runtime_kind],
        execution_region=region(request.execution_region),
        egress=egress(request.egress),
        targets=tuple(request.targets),
        capabilities=tuple(request.capabilities),
    )


def _from_registered(value: Registered) -> pb.RegisterResponse:
    """The answer to a registration."""
    lease = Duration()
    lease.FromTimedelta(value.lease)
    return pb.RegisterResponse(
        instance_id=value.instance_id,
        lease=lease,
        tenant_id=value.tenant_id,
        catalog_id=value.catalog_id,
        granted_sources=value.granted_sources,
    )


def _to_heartbeat(request: pb.HeartbeatRequest) -> Heartbeat:
    at, receipts = moment(request.at, "at"), tuple(request.receipt_ids)
    if not request.HasField("run"):
        return Heartbeat(request.instance_id, at, receipt_ids=receipts)
    run = request.run
    return Heartbeat(
        request.instance_id,
        at,
        started_at=moment(run.started_at, "run.started_at"),
        ended_at=moment(run.ended_at, "run.ended_at"),
        report=_report(run),
        sources=tuple(source.source_id for source in run.sources),
        receipt_ids=receipts,
    )


def _report(run: pb.RunReport) -> dict[str, object]:
    return {
        "started_at": moment(run.started_at, "run.started_at"),
        "ended_at": moment(run.ended_at, "run.ended_at"),
        "outcome": _OUTCOME[run.outcome],
        "error": _error(run.error) if run.HasField("error") else None,
        "captures_submitted": run.captures_submitted,
        "sources": [_source_run(source) for source in run.sources],
    }


def _source_run(source: pb.SourceRun) -> dict[str, object]:
    return {
        "source_id": source.source_id,
        "planned": source.planned,
        "kept": source.kept,
        "submitted": source.submitted,
        "put_off": source.put_off,
        "poison": source.poison,
        "error": _error(source.error) if source.HasField("error") else None,
    }


def _error(error: pb.RunError) -> dict[str, object]:
    return {"code": error.code, "retryable": error.retryable}


def _from_heard(heard: Heard) -> pb.HeartbeatResponse:
    standing = heard.standing
    until, success = standing.lease_expires_at, standing.last_success
    return pb.HeartbeatResponse(
        instance_id=standing.instance_id,
        consecutive_failures=standing.consecutive_failures,
        last_success=None if success is None else timestamp(success),
        lease_expires_at=None if until is None else timestamp(until),
        receipts=[from_receipt(receipt) for receipt in heard.receipts],
    )
