"""A service with all four kinds of call, described at run time, for tests of the server's layers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.wrappers_pb2 import StringValue

from prw.collector.v1.capture_service_pb2 import GetReceiptRequest
from prw.options.v1 import options_pb2
from prw_base.principal import find_current

SERVICE = "prw.test.v1.EchoService"
# Any message with a rule will do: receipt_id must not be empty.
Request = GetReceiptRequest
Context = grpc.aio.ServicerContext[Any, Any]

_METHODS = {
    "Open": (False, False, options_pb2.Access(public=True)),
    "Unary": (False, False, options_pb2.Access(scopes=["captures:write"])),
    "Either": (
        False,
        False,
        options_pb2.Access(scopes=["receipts:read"], role=options_pb2.ROLE_REVIEWER),
    ),
    "Person": (False, False, options_pb2.Access(role=options_pb2.ROLE_OPERATOR_ADMIN)),
    "Down": (False, True, options_pb2.Access(scopes=["captures:write"])),
    "Up": (True, False, options_pb2.Access(scopes=["captures:write"])),
    "Both": (True, True, options_pb2.Access(scopes=["captures:write"])),
    "Undeclared": (False, False, None),
    "Empty": (False, False, options_pb2.Access()),
}


def _describe() -> None:
    file = descriptor_pb2.FileDescriptorProto(
        name="prw/test/v1/echo_service.proto", package="prw.test.v1", syntax="proto3"
    )
    file.dependency.extend([Request.DESCRIPTOR.file.name, StringValue.DESCRIPTOR.file.name])
    service = file.service.add(name="EchoService")
    for name, (up, down, access) in _METHODS.items():
        method = service.method.add(
            name=name,
            input_type=f".{Request.DESCRIPTOR.full_name}",
            output_type=".google.protobuf.StringValue",
            client_streaming=up,
            server_streaming=down,
        )
        if access is not None:
            method.options.Extensions[options_pb2.access].CopyFrom(access)
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString())


_describe()


def asked(receipt_id: str = "x") -> Request:
    """A request; an empty ``receipt_id`` breaks its rule."""
    return Request(receipt_id=receipt_id)


def _who() -> str:
    principal = find_current()
    return "nobody" if principal is None else principal.subject


@dataclass(slots=True)
class Echo:
    """Answers with the caller and what it sent; ``act`` runs first in every method."""

    act: Callable[[], Awaitable[None]]
    seen: list[str] = field(default_factory=list)
    padding: str = ""

    async def unary(self, request: Request, context: Context) -> StringValue:
        """One in, one out."""
        await self.act()
        self.seen.append(request.receipt_id)
        return StringValue(value=f"{_who()}:{request.receipt_id}")

    async def down(self, request: Request, context: Context) -> AsyncIterator[StringValue]:
        """One in, as many out as its id says."""
        for number in range(int(request.receipt_id)):
            yield StringValue(value=f"{_who()}:{number}{self.padding}")
        await self.act()

    async def up(self, requests: AsyncIterator[Request], context: Context) -> StringValue:
        """Many in, one out."""
        async for request in requests:
            self.seen.append(request.receipt_id)
        await self.act()
        return StringValue(value=f"{_who()}:{len(self.seen)}")

    async def both(
        self, requests: AsyncIterator[Request], context: Context
    ) -> AsyncIterator[StringValue]:
        """Each in, each out."""
        await self.act()
        async for request in requests:
            yield StringValue(value=f"{_who()}:{request.receipt_id}")


def adder(*names: str) -> Callable[[Echo, grpc.aio.Server], None]:
    """What generated code would give for a service with these methods."""

    def add(echo: Echo, server: grpc.aio.Server) -> None:
        handlers = {name: _handler(echo, name) for name in names}
        server.add_registered_method_handlers(SERVICE, handlers)

    return add


def _handler(echo: Echo, name: str) -> grpc.RpcMethodHandler[Any, Any]:
    up, down, _ = _METHODS[name]
    kinds: dict[tuple[bool, bool], tuple[Any, Any]] = {
        (False, False): (grpc.unary_unary_rpc_method_handler, echo.unary),
        (False, True): (grpc.unary_stream_rpc_method_handler, echo.down),
        (True, False): (grpc.stream_unary_rpc_method_handler, echo.up),
        (True, True): (grpc.stream_stream_rpc_method_handler, echo.both),
    }
    make, method = kinds[up, down]
    handler: grpc.RpcMethodHandler[Any, Any] = make(
        method,
        request_deserializer=Request.FromString,
        response_serializer=StringValue.SerializeToString,
    )
    return handler


class Stub:
    """Calls every method of the service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def __getattr__(self, name: str) -> Any:
        up, down, _ = _METHODS[name]
        kind = f"{'stream' if up else 'unary'}_{'stream' if down else 'unary'}"
        return getattr(self._channel, kind)(
            f"/{SERVICE}/{name}",
            request_serializer=Request.SerializeToString,
            response_deserializer=StringValue.FromString,
        )
