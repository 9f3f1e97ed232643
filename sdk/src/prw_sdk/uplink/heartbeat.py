"""Heartbeats and run reports (if_heartbeat): best effort; only a revoked credential is a reason to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from prw.collector.v1 import collector_service_pb2 as collectors
from prw.collector.v1.evidence_pb2 import Receipt
from prw.errors import Code, PrwError
from prw_sdk.report import RunOutcome, RunSummary
from prw_sdk.uplink.messages import to_timestamp

LEASE = timedelta(seconds=90)
"""How long a heartbeat keeps an instance live where the resolver says nothing (DEC-05)."""
TIMEOUT = timedelta(seconds=5)
AGAIN = timedelta(seconds=5)
"""The wait before the one retry of a heartbeat."""

_log = structlog.get_logger(__name__)
_OUTCOMES: Mapping[RunOutcome, collectors.RunOutcome.ValueType] = {
    RunOutcome.SUCCEEDED: collectors.RUN_OUTCOME_SUCCEEDED,
    RunOutcome.PARTIAL: collectors.RUN_OUTCOME_PARTIAL,
    RunOutcome.FAILED: collectors.RUN_OUTCOME_FAILED,
}


@dataclass(frozen=True, slots=True)
class Pulse:
    """What the resolver knows of an instance: failed runs in a row, the last good one, until when it counts as live."""

    consecutive_failures: int
    last_success: datetime | None
    lease_expires_at: datetime | None
    receipts: Sequence[Receipt] = ()


def request(
    instance: str, at: datetime, run: RunSummary | None, receipts: Sequence[str]
) -> collectors.HeartbeatRequest:
    """The message of one heartbeat; with the instance, `at` identifies it."""
    return collectors.HeartbeatRequest(
        instance_id=instance,
        at=to_timestamp(at),
        run=None if run is None else _report(run),
        receipt_ids=receipts,
    )


def pulse(answer: collectors.HeartbeatResponse) -> Pulse:
    """The answer to a heartbeat."""
    return Pulse(
        answer.consecutive_failures,
        answer.last_success.ToDatetime(UTC) if answer.HasField("last_success") else None,
        answer.lease_expires_at.ToDatetime(UTC) if answer.HasField("lease_expires_at") else None,
        tuple(answer.receipts),
    )


def _report(run: RunSummary) -> collectors.RunReport:
    return collectors.RunReport(
        started_at=to_timestamp(run.started_at),
        ended_at=to_timestamp(run.ended_at),
        outcome=_OUTCOMES[run.outcome],
        error=_error(run.code, run.retryable),
        captures_submitted=run.submitted,
        sources=[
            collectors.SourceRun(
                source_id=one.source_id,
                planned=one.planned,
                kept=one.kept,
                submitted=one.submitted,
                put_off=one.put_off,
                poison=one.poison,
                error=_error(one.code, one.retryable),
            )
            for one in run.sources[:1000]
        ],
    )


def _error(code: str | None, retryable: bool) -> collectors.RunError | None:
    return None if code is None else collectors.RunError(code=code[:64], retryable=retryable)


def is_skipped(error: PrwError) -> bool:
    """Whether a heartbeat that failed so is left out; a revoked credential is heeded instead."""
    if error.code is Code.CREDENTIAL_REVOKED:
        return False
    _log.info("a heartbeat was left out", code=error.code.value, said=error.message)
    return True


async def resting(wait: timedelta, stop: asyncio.Event) -> bool:
    """Wait so long, or until `stop` is set; whether it is."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), wait.total_seconds())
    return stop.is_set()
