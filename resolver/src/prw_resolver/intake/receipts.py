"""What a receipt says, computed from what the rooms below have done with the capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from prw_resolver.identity.store import StoredOutcome
from prw_resolver.jobs.model import Stage, StageState
from prw_resolver.stream.model import Outcome


class ReceiptStatus(StrEnum):
    """How far a capture has come. Accepted never means applied."""

    STORED = "stored"
    RESOLVING = "resolving"
    RESOLVED = "resolved"
    IN_REVIEW = "in_review"
    REJECTED = "rejected"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class KeptReceipt:
    """A receipt's row."""

    receipt_id: str
    capture_id: str
    instance_id: str
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt as it is answered. `replayed` is True where this very capture had been submitted before."""

    receipt_id: str
    capture_id: str
    received_at: datetime
    status: ReceiptStatus
    replayed: bool = False
    records: tuple[StoredOutcome, ...] = ()


def status_of(state: StageState, records: Sequence[StoredOutcome]) -> ReceiptStatus:
    """How far a capture has come, given its stages and its records' outcomes.

    A stage that failed for good comes first, since an operator must act; before the last stage is done nothing else
    is final.
    """
    if state.dead_code is not None:
        return ReceiptStatus.FAILED
    if Stage.IDENTIFY not in state.done:
        return ReceiptStatus.RESOLVING if state.done else ReceiptStatus.STORED
    outcomes = {record.outcome for record in records}
    if Outcome.IN_REVIEW in outcomes:
        return ReceiptStatus.IN_REVIEW
    return ReceiptStatus.RESOLVED if outcomes - {Outcome.REJECTED} else ReceiptStatus.REJECTED
