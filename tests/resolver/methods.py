"""Every method that the resolver serves, a sound request for each, and a call of any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from prw.errors import TABLE, Code, PrwError
from prw.grpc_errors import from_rpc_error, status_code
from prw.operator.v1 import review_service_pb2
from tests.resolver.collecting import AT, capture, digest, timestamp

CONSUMER: Final[dict[str, object]] = {"consumer_id": "c", "history_epoch": 1}
LEASE: Final[dict[str, object]] = {"lease_id": "lea_none", "history_epoch": 1}
CHECKPOINT: Final[dict[str, object]] = {
    "source_id": "ten_synth_a.src_one",
    "adapter": "shop",
    "partition": "",
}
SOUND: Final[Mapping[str, Mapping[str, object]]] = {
    "Register": {
        "worker_id": "cw_one",
        "instance_id": "ci_one",
        "targets": ["ten_synth_a.src_one"],
    },
    "DeclareUpload": {
        "source_id": "ten_synth_a.src_one",
        "sha256": digest(b"q"),
        "bytes": 1,
        "media_type": "text/html",
    },
    "PutArtifact": {"upload_id": "upl_none"},
    "StoreArtifacts": {
        "declaration": {
            "sequence": 1,
            "source_id": "ten_synth_a.src_one",
            "sha256": digest(b"q"),
            "bytes": 1,
            "media_type": "text/html",
        }
    },
    "Heartbeat": {"instance_id": "ci_one", "at": timestamp(AT)},
    "GetCheckpoint": {"key": CHECKPOINT},
    "AdvanceCheckpoint": {"key": CHECKPOINT, "state": "{}"},
    "SubmitCapture": {"capture": capture()},
    "GetReceipt": {"receipt_id": "rcp_none"},
    "BatchGetReceipts": {"receipt_ids": ["rcp_none"]},
    "ListCases": {},
    "GetCase": {"case_id": "case_none"},
    "Decide": {
        "case_id": "case_none",
        "expected_revision": 1,
        "action": review_service_pb2.DECISION_ACTION_REJECT,
        "rationale": "because",
        "idempotency_key": "k",
    },
    "StreamChanges": CONSUMER,
    # neither a consumer nor a lease: each of them needs a scope of its own
    "ListChanges": {"history_epoch": 1},
    "GetEpoch": {},
    "RegisterConsumer": {"consumer_id": "c"},
    "ReportProgress": CONSUMER,
    "CreateSnapshot": {"client_token": "t"},
    "GetSnapshot": {"export_id": "exp_none"},
    "ReadObject": {"export_id": "exp_none", "name": "merchant-1"},
    "RenewLease": LEASE,
    "ReleaseLease": LEASE,
    "GetDigest": {"history_epoch": 1},
}
"""What a method takes, where nothing that it names is there."""


async def methods(channel: grpc.aio.Channel) -> list[MethodDescriptor]:
    """Every method that the server says it has, but for health and reflection."""
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(cast("Any", channel))
    request = cast("Any", reflection_pb2).ServerReflectionRequest(list_services="")
    answer = await stub.ServerReflectionInfo(iter([request])).read()
    names = [held.name for held in answer.list_services_response.service]
    pool = descriptor_pool.Default()
    found = [pool.FindServiceByName(name) for name in names if name.startswith("prw.")]
    return [method for service in found for method in service.methods]


def sound(method: MethodDescriptor) -> Any:
    """A request that breaks no rule."""
    return message_factory.GetMessageClass(method.input_type)(**SOUND[method.name])


async def refused(
    channel: grpc.aio.Channel, method: MethodDescriptor, request: Message
) -> PrwError | None:
    """The error that one call ends with, its status checked against the table; None where it is answered.

    A stream that refuses one thing of many says so in its answer.
    """
    try:
        return await _first_answer(_multicallable(channel, method), method, request)
    except grpc.RpcError as error:
        return _typed(error)


async def _first_answer(call: Any, method: MethodDescriptor, request: Message) -> PrwError | None:
    sent = iter([request]) if method.client_streaming else request
    if not method.server_streaming:
        await call(sent, timeout=5)
        return None
    stream = call(sent, timeout=5)
    answer = await stream.read()
    stream.cancel()
    told = getattr(answer, "error", None)
    if told is None or not told.code:
        return None
    return PrwError(Code(told.code), told.message, field=told.field or None)


def _multicallable(channel: grpc.aio.Channel, method: MethodDescriptor) -> Any:
    kind = f"{_flow(method.client_streaming)}_{_flow(method.server_streaming)}"
    answer = message_factory.GetMessageClass(method.output_type)
    return getattr(channel, kind)(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString,
    )


def _flow(streaming: bool) -> str:
    return "stream" if streaming else "unary"


def _typed(error: grpc.RpcError) -> PrwError:
    """The error, once its gRPC status and its details are those of its code."""
    typed, call = from_rpc_error(error), cast("grpc.Call", error)
    status = rpc_status.from_call(call)
    assert call.code() is status_code(typed.code), typed
    assert status is not None, f"{typed} came without details"
    sent = {detail.TypeName() for detail in status.details}
    expected = {error_details_pb2.ErrorInfo: True}
    expected[error_details_pb2.RetryInfo] = TABLE[typed.code].retryable
    expected[error_details_pb2.BadRequest] = typed.field is not None
    assert sent == {kind.DESCRIPTOR.full_name for kind, wanted in expected.items() if wanted}
    return typed


def paths(message: Descriptor, above: tuple[FieldDescriptor, ...] = ()) -> Iterator[Any]:
    """The way to every field of a request, through the messages of the contract."""
    for field in message.fields:
        yield (*above, field)
        below = field.message_type
        if below is not None and below.file.package.startswith("prw.") and not is_map(field):
            yield from paths(below, (*above, field))


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def place(request: Any, path: tuple[FieldDescriptor, ...], value: object) -> None:
    """Set the field at the end of `path`; of a repeated one the last member, of a map both halves of a pair."""
    *way, last = path
    for field in way:
        request = getattr(request, field.name)
        if field.is_repeated:
            request = request[0] if len(request) else request.add()
    if is_map(last):
        getattr(request, last.name)[value] = value
    elif last.is_repeated:
        getattr(request, last.name).append(value)
    else:
        setattr(request, last.name, value)
