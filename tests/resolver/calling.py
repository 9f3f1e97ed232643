"""Review and changes served over real gRPC, and callers of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from prw.changes.v1.change_service_pb2_grpc import (
    ChangeServiceStub,
    add_ChangeServiceServicer_to_server,
)
from prw.changes.v1.export_service_pb2_grpc import add_ExportServiceServicer_to_server
from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error
from prw.operator.v1.review_service_pb2_grpc import (
    ReviewServiceStub,
    add_ReviewServiceServicer_to_server,
)
from prw_base.client import open_channel
from prw_base.principal import Kind, Principal, Role
from prw_base.scope import Scope
from prw_base.server.rpc import RpcServer, RpcSettings
from prw_resolver.export.rpc import ExportServicer
from prw_resolver.export.service import Exports
from prw_resolver.review.rpc import ReviewServicer
from prw_resolver.stream.rpc import ChangeServicer
from prw_resolver.stream.signal import Signal
from tests.resolver.catalogue import SCOPE, Rooms

OTHER = Scope("ten_synth_b", "cat_primary")


def person(name: str, role: Role, scope: Scope = SCOPE) -> Principal:
    """A person of the tenant."""
    return Principal(
        Kind.PERSON, name, scope.tenant_id, scope.catalog_id, f"client-{name}", role=role
    )


def machine(name: str, *scopes: str, scope: Scope = SCOPE) -> Principal:
    """A service of the tenant."""
    return Principal(
        Kind.MACHINE,
        name,
        scope.tenant_id,
        scope.catalog_id,
        f"client-{name}",
        instance_id=name,
        scopes=frozenset(scopes),
    )


CALLERS = {
    "viewer": person("vera", Role.VIEWER),
    "reviewer": person("rita", Role.REVIEWER),
    "stranger": person("sven", Role.REVIEWER, OTHER),
    "elsewhere": person("elsa", Role.REVIEWER, Scope(SCOPE.tenant_id, "cat_other")),
    "product": machine("product-1", "changes:read"),
    "rebuilder": machine("product-1", "changes:read", "exports:read"),
    "rival rebuilder": machine("product-2", "exports:read"),
    "rival": machine("product-2", "changes:read"),
    "neighbour": machine("product-b", "changes:read", scope=OTHER),
    "collector": machine("collector-1", "captures:write"),
}
REVOKED: set[str] = set()


async def authenticate(token: str) -> Principal:
    """The caller of that name, unless it was revoked meanwhile."""
    if token in REVOKED:
        raise PrwError(Code.CREDENTIAL_REVOKED, "this credential is revoked")
    if token not in CALLERS:
        raise PrwError(Code.INVALID_TOKEN, "nobody has this token")
    return CALLERS[token]


@dataclass
class Served:
    """The services of one catalogue's rooms, and the channels to them."""

    server: RpcServer
    stack: AsyncExitStack

    async def review(self, who: str) -> Any:
        """A stub of `ReviewService` for that caller."""
        return ReviewServiceStub(await self._channel(who))

    async def changes(self, who: str) -> Any:
        """A stub of `ChangeService` for that caller."""
        return ChangeServiceStub(await self._channel(who))

    async def _channel(self, who: str) -> grpc.aio.Channel:
        target = f"127.0.0.1:{self.server.port}"
        return await self.stack.enter_async_context(open_channel(target, who))


@asynccontextmanager
async def served(
    held: Rooms,
    signal: Signal | None = None,
    settings: RpcSettings | None = None,
    exports: Exports | None = None,
) -> AsyncIterator[Served]:
    """Serve until the block ends."""
    REVOKED.clear()
    server = RpcServer(authenticate, settings)
    server.add(add_ReviewServiceServicer_to_server, ReviewServicer(held.review))
    changes = ChangeServicer(held.feed, signal or held.signal, server.draining)
    server.add(add_ChangeServiceServicer_to_server, changes)
    if exports is not None:
        server.add(add_ExportServiceServicer_to_server, ExportServicer(exports))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server)
        yield Served(server, stack)


async def refusal(call: Any) -> PrwError:
    """The PrwError that the call ends with, as its caller gets it."""
    try:
        await call
    except grpc.RpcError as error:
        return from_rpc_error(error)
    raise AssertionError("the call was answered")
