"""aiohttp's connections, made to checked addresses only, and never used again with bytes of another page in them."""

from __future__ import annotations

import ipaddress
import select
import socket
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import aiohttp
from aiohttp.abc import ResolveResult

from prw_sdk.fetch.guard import Guard, PrivateAddress

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace


class GuardedConnector(aiohttp.TCPConnector):
    """Asks the guard for every name and every literal address, and opens no socket to what it did not let through.

    The second check is for a later aiohttp that would take another way than `_resolve_host`: it then reaches nothing.
    """

    def __init__(self, guard: Guard, tls: ssl.SSLContext) -> None:
        # the gates bound how many requests are under way, so the pool need not
        super().__init__(
            ssl=tls,
            limit=0,
            use_dns_cache=False,
            keepalive_timeout=5.0,
            socket_factory=self._socket,
        )
        self._guard = guard
        self._let_through: set[tuple[str, int]] = set()
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection that holds nothing yet.

        An answer that was there before its question belongs to another page: a source that sends more bytes than it
        stated would otherwise have them taken for the next page on that connection.
        """
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None or protocol not in self._used:
                break
            if not protocol.should_close and not _is_readable(connection):
                return connection
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        return connection

    async def _resolve_host(
        self, host: str, port: int, traces: Sequence[Trace] | None = None
    ) -> list[ResolveResult]:
        found = await self._guard.endpoints(host, port)
        self._let_through.update(found)
        return [_resolved(host, address, at) for address, at in found]

    def _socket(self, info: Any) -> socket.socket:
        family, kind, protocol, _, (address, port, *_) = info
        if (address, port) not in self._let_through:
            raise PrivateAddress(address, port, address)
        made = socket.socket(family=family, type=kind, proto=protocol)
        made.setblocking(False)
        return made


def _resolved(host: str, address: str, port: int) -> ResolveResult:
    is_v6 = ipaddress.ip_address(address.partition("%")[0]).version == 6
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if is_v6 else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


def _is_readable(connection: Connection) -> bool:
    transport = connection.transport
    made = None if transport is None else transport.get_extra_info("socket")
    if made is None or made.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(made.fileno(), select.POLLIN)
    return bool(poll.poll(0))
