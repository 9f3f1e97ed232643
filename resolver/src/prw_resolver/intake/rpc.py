"""Captures and receipts over gRPC: translate, call one use case, translate back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from prw.collector.v1 import (
    capture_service_pb2 as captures_pb,
)
from prw.collector.v1 import (
    capture_service_pb2_grpc as captures_grpc,
)
from prw.collector.v1 import evidence_pb2 as pb
from prw.errors import Code, PrwError
from prw_base.principal import current
from prw_base.server.rpc import Context
from prw_resolver.intake import service
from prw_resolver.intake.model import Submission, SubmittedPart
from prw_resolver.intake.receipts import Receipt, ReceiptStatus
from prw_resolver.intake.service import Intake
from prw_sdk.evidence import AdapterVersion, Citation, Egress, Presence, Region

_PRESENCE: Final = {
    pb.PRESENCE_PRESENT: Presence.PRESENT,
    pb.PRESENCE_ABSENT: Presence.ABSENT,
}
_STATUS: Final = {
    ReceiptStatus.STORED: pb.RECEIPT_STATUS_STORED,
    ReceiptStatus.RESOLVING: pb.RECEIPT_STATUS_RESOLVING,
    ReceiptStatus.RESOLVED: pb.RECEIPT_STATUS_RESOLVED,
    ReceiptStatus.IN_REVIEW: pb.RECEIPT_STATUS_IN_REVIEW,
    ReceiptStatus.REJECTED: pb.RECEIPT_STATUS_REJECTED,
    ReceiptStatus.FAILED: pb.RECEIPT_STATUS_FAILED,
}


class CaptureServicer(captures_grpc.CaptureServiceServicer):
    """Submission of captures and look-up of receipts."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def SubmitCapture(
        self, request: captures_pb.SubmitCaptureRequest, context: Context
    ) -> captures_pb.SubmitCaptureResponse:
        submission = _to_submission(request.capture)
        receipt = await service.submit(self._intake, current(), submission)
        return captures_pb.SubmitCaptureResponse(receipt=from_receipt(receipt))

    async def GetReceipt(
        self, request: captures_pb.GetReceiptRequest, context: Context
    ) -> captures_pb.GetReceiptResponse:
        [receipt] = await service.get_receipts(self._intake, current(), [request.receipt_id])
        return captures_pb.GetReceiptResponse(receipt=from_receipt(receipt))

    async def BatchGetReceipts(
        self, request: captures_pb.BatchGetReceiptsRequest, context: Context
    ) -> captures_pb.BatchGetReceiptsResponse:
        receipts = await service.get_receipts(self._intake, current(), request.receipt_ids)
        answers = [from_receipt(receipt) for receipt in receipts]
        return captures_pb.BatchGetReceiptsResponse(receipts=answers)


def _to_submission(capture: pb.Capture) -> Submission:
    """The capture that is submitted; VALIDATION_FAILED where a time or a number has no exact value here."""
    return Submission(
        source_id=capture.source_id,
        native_record_id=capture.native_record_id,
        captured_at=moment(capture.captured_at, "capture.captured_at"),
        adapter=AdapterVersion(capture.adapter.name, capture.adapter.version),
        config=_object(capture.config),
        config_digest=capture.config_digest,
        parts=tuple(_part(part, index) for index, part in enumerate(capture.parts)),
        presence=_PRESENCE[capture.presence],
        execution_region=region(capture.execution_region),
        egress=egress(capture.egress),
    )


def _part(part: pb.Part, index: int) -> SubmittedPart:
    field = f"capture.parts[{index}]"
    return SubmittedPart(
        role=part.role,
        sha256=part.sha256,
        size=part.bytes,
        media_type=part.media_type,
        charset_declared=part.charset_declared or None,
        charset_used=part.charset_used or None,
        url_asked=part.url_asked,
        url_reached=part.url_reached,
        http_status=part.http_status,
        headers=tuple((header.name, header.value) for header in part.headers),
        fetched_at=moment(part.fetched_at, f"{field}.fetched_at"),
        cites=_citation(part, field),
    )


def _citation(part: pb.Part, field: str) -> Citation | None:
    if not part.HasField("cites"):
        return None
    at = moment(part.cites.captured_at, f"{field}.cites.captured_at")
    return Citation(at, part.cites.sha256)


def from_receipt(value: Receipt) -> pb.Receipt:
    """A receipt."""
    outcomes = [
        pb.RecordOutcome(
            record_id=record.record_id,
            outcome=record.outcome,
            case_id=record.case_id or "",
            code=record.code or "",
        )
        for record in value.records
    ]
    return pb.Receipt(
        receipt_id=value.receipt_id,
        capture_id=value.capture_id,
        received_at=timestamp(value.received_at),
        status=_STATUS[value.status],
        replayed=value.replayed,
        records=outcomes,
    )


def region(region: pb.Region) -> Region:
    """Where a collector ran."""
    return Region(region.country, region.label, region.declared_by)


def egress(egress: pb.Egress) -> Egress:
    """Which country sources saw."""
    return Egress(egress.country, egress.verified)


def moment(timestamp: Timestamp, field: str) -> datetime:
    """A moment to the microsecond; VALIDATION_FAILED with that field where it is none."""
    if timestamp.nanos % 1000:
        raise _invalid(field, "is finer than a microsecond")
    try:
        return timestamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as outside:
        raise _invalid(field, "is no moment between the years 1 and 9999") from outside


def timestamp(at: datetime) -> Timestamp:
    """A moment as a message."""
    message = Timestamp()
    message.FromDatetime(at)
    return message


def _object(struct: Struct) -> dict[str, object]:
    return {name: _value(value) for name, value in struct.fields.items()}


def _value(value: Value) -> object:
    match value.WhichOneof("kind"):
        case "struct_value":
            return _object(value.struct_value)
        case "list_value":
            return _list(value.list_value)
        case "number_value":
            return _number(value.number_value)
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _list(values: ListValue) -> list[object]:
    return [_value(value) for value in values.values]


def _number(number: float) -> int:
    # JSON on this wire knows only doubles, which have no canonical text; whole ones do.
    if not number.is_integer():
        raise _invalid("capture.config", "holds a fraction; write such a number as text")
    return int(number)


def _invalid(field: str, message: str) -> PrwError:
    return PrwError(Code.VALIDATION_FAILED, message, field=field)
