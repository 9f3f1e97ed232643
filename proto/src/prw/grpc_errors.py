"""The table of errors on gRPC: ``google.rpc.Status`` out, ``PrwError`` back in.

A code travels as its gRPC status with ``ErrorInfo{reason, domain}``, with ``RetryInfo`` where it
may be sent again, and with ``BadRequest`` where a field is wrong (google.rpc error model).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn, cast

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from prw.errors import DOMAIN, TABLE, Code, PrwError

DEFAULT_RETRY_AFTER = timedelta(seconds=1)
"""The wait that a retryable error asks for when it names none."""

STATUS_KEY = "grpc-status-details-bin"

_CODES = {status.name: status for status in grpc.StatusCode}
_BY_STATUS = {
    grpc.StatusCode.UNAVAILABLE: Code.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: Code.UNAVAILABLE,
    grpc.StatusCode.CANCELLED: Code.UNAVAILABLE,
    grpc.StatusCode.UNAUTHENTICATED: Code.INVALID_TOKEN,
    grpc.StatusCode.PERMISSION_DENIED: Code.PERMISSION_DENIED,
    grpc.StatusCode.NOT_FOUND: Code.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT: Code.VALIDATION_FAILED,
    # Only the transport's message limit answers so without our ErrorInfo.
    grpc.StatusCode.RESOURCE_EXHAUSTED: Code.VALIDATION_FAILED,
    # Ours carries ErrorInfo; without it the transport broke off, as where a peer ends a stream that is being written.
    grpc.StatusCode.INTERNAL: Code.UNAVAILABLE,
}


def status_code(code: Code) -> grpc.StatusCode:
    """The gRPC status under which ``code`` travels."""
    return _CODES[TABLE[code].grpc]


def to_status(error: PrwError) -> status_pb2.Status:
    """``error`` as the rich status that travels in the trailing metadata."""
    status = status_pb2.Status(code=status_code(error.code).value[0], message=error.message)
    for detail in _details(error):
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _details(error: PrwError) -> list[Any]:
    details: list[Any] = [
        error_details_pb2.ErrorInfo(reason=error.code, domain=DOMAIN, metadata=error.details)
    ]
    if error.retryable or error.retry_after is not None:
        wait = duration_pb2.Duration()
        wait.FromTimedelta(error.retry_after or DEFAULT_RETRY_AFTER)
        details.append(error_details_pb2.RetryInfo(retry_delay=wait))
    if error.field is not None:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=error.field, description=error.message
        )
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    return details


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: PrwError) -> NoReturn:
    """End the call with ``error``; never returns."""
    status = to_status(error)
    await context.abort(
        status_code(error.code), error.message, ((STATUS_KEY, status.SerializeToString()),)
    )
    raise AssertionError("abort returned")


def from_rpc_error(error: grpc.RpcError) -> PrwError:
    """The error that a call ended with.

    A status without our ErrorInfo comes from the transport: UNAVAILABLE and a passed deadline
    become UNAVAILABLE (retryable), anything that no table row fits becomes INTERNAL.
    """
    call = cast("grpc.Call", error)  # what every RpcError of a call also is
    status = rpc_status.from_call(call)
    typed = None if status is None else _from_status(status)
    if typed is not None:
        return typed
    status_name, code = call.code().name, _BY_STATUS.get(call.code(), Code.INTERNAL)
    said = call.details() or "the call ended without a word"
    return PrwError(code, said if status_name == code else f"{status_name}: {said}")


def _from_status(status: status_pb2.Status) -> PrwError | None:
    info = error_details_pb2.ErrorInfo()
    retry = error_details_pb2.RetryInfo()
    bad = error_details_pb2.BadRequest()
    unpacked = [
        d.Unpack(into)
        for d in status.details
        for into in (info, retry, bad)
        if d.Is(into.DESCRIPTOR)
    ]
    if not unpacked or info.domain != DOMAIN or info.reason not in Code.__members__:
        return None
    return PrwError(
        Code(info.reason),
        status.message,
        field=bad.field_violations[0].field if bad.field_violations else None,
        retry_after=retry.retry_delay.ToTimedelta() if retry.HasField("retry_delay") else None,
        details=dict(info.metadata),
    )
