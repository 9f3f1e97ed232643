"""Every method of the contract, found in its generated code, and calls of any of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import prw
from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error

SECONDS = 10.0

Answer = Message | Code
"""What a call came to: an answer, of a stream the first one, or the code of the refusal."""


def methods() -> dict[str, MethodDescriptor]:
    """Every method of every service of ours, by its full name."""
    return {
        method.full_name: method
        for module in _modules()
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def _modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(prw.__path__, "prw."):
        if found.name.endswith("_service_pb2"):
            yield importlib.import_module(found.name)


_TRIES = 5


async def ask(
    channel: grpc.aio.Channel, method: MethodDescriptor, requests: Sequence[Message]
) -> Answer:
    """Call a method of any kind; a stream of answers is read up to its first.

    Where the server refuses while the caller still writes, the caller's library may lose the reason; it is asked again.
    """
    for _ in range(_TRIES if method.client_streaming else 1):
        answer = await _ask(channel, method, requests)
        if answer is not Code.UNAVAILABLE:
            return answer
    return Code.UNAVAILABLE


async def _ask(
    channel: grpc.aio.Channel, method: MethodDescriptor, requests: Sequence[Message]
) -> Answer:
    kind = ("stream" if method.client_streaming else "unary") + (
        "_stream" if method.server_streaming else "_unary"
    )
    call = getattr(channel, kind)(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=_bytes,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )(iter(requests) if method.client_streaming else requests[0], timeout=SECONDS)
    try:
        return await (_first(call) if method.server_streaming else call)
    except grpc.RpcError as error:
        return _code(from_rpc_error(error))
    finally:
        call.cancel()


def _bytes(message: Message) -> bytes:
    return message.SerializeToString()


async def _first(call: Any) -> Answer:
    async for message in call:
        first: Message = message
        # A stream that refuses one thing of many says so in its answer.
        told = getattr(first, "error", None)
        return Code(told.code) if told is not None and told.code else first
    raise AssertionError("a stream ended without an answer")


def _code(error: PrwError) -> Code:
    assert error.code is not Code.INTERNAL, error
    return error.code
