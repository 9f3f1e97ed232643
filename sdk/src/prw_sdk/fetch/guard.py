"""Which addresses may be connected to, and a network backend that connects to nothing else.

A name is resolved once for a connection, every address is checked, and the connection is made to the very address
that was checked. There is no second resolution, so a name that changes its answer in between gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import httpcore

from prw_sdk.fetch.order import OrderedStream

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Endpoint = tuple[str, int]
Resolve = Callable[[str, int], Awaitable[tuple[str, ...]]]

_CLOSED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, and a cloud's metadata service
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's metadata service on a public address
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "2001::/23",  # protocol assignments: Teredo, anycast, ORCHID, benchmarking
        "2001:db8::/32",
        "3fff::/20",
    )
)
"""What the IANA special-purpose address registries (RFC 6890) do not call globally reachable.

Kept here, since the standard library's own list differs from one Python to the next.
"""
_OPEN_WITHIN = tuple(ipaddress.ip_network(text) for text in ("2001:3::/32", "2001:4:112::/48"))
_UNICAST = ipaddress.ip_network("2000::/3")
"""All that is allocated of IPv6 (RFC 3587); whatever is outside is public only for an IPv4 address inside it."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class PrivateAddress(Exception):
    """A name leads to an address that is not public, and the source's settings do not allow it."""

    def __init__(self, host: str, port: int, address: str) -> None:
        name = _name(host, port)
        super().__init__(
            f"{name} leads to {address}, which is not a public address; "
            f'add "{name}" to the source\'s allow_private if that is meant'
        )
        self.host = host
        self.port = port
        self.address = address


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What a source's settings say about addresses.

    `allow_private` holds names (``host`` or ``host:port``, an IPv6 address in brackets) that may lead to addresses
    that are not public.
    `resolve` maps (host, port) to the address and port to connect to instead, as curl's ``--resolve`` does; it
    allows nothing by itself.
    """

    allow_private: frozenset[str] = frozenset()
    resolve: Mapping[Endpoint, Endpoint] = field(default_factory=lambda: MappingProxyType({}))

    def allows(self, host: str, port: int) -> bool:
        """Whether that name may lead to an address that is not public."""
        names = {host, _name(host), _name(host, port)}
        return not names.isdisjoint(self.allow_private)


def _name(host: str, port: int | None = None) -> str:
    """A host as settings write it: an IPv6 address in brackets."""
    written = f"[{host}]" if ":" in host else host
    return written if port is None else f"{written}:{port}"


def is_public(address: IPAddress) -> bool:
    """Whether an address is on the public internet, IPv4 inside IPv6 included."""
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    if any(address in net for net in _OPEN_WITHIN):
        return True
    known = address.version == 4 or address in _UNICAST
    return known and not any(address in net for net in _CLOSED)


def _embedded(address: IPAddress) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


async def system_resolve(host: str, port: int) -> tuple[str, ...]:
    """Every address of a name, as the system resolves it, in its order."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class Guard:
    """Turns a name into endpoints that may be connected to."""

    def __init__(self, rules: AddressRules, resolve: Resolve = system_resolve) -> None:
        self._rules = rules
        self._resolve = resolve

    async def endpoints(self, host: str, port: int) -> tuple[Endpoint, ...]:
        """The checked endpoints of a name; raises `PrivateAddress` if any of them is not public."""
        host = host.strip("[]").lower().rstrip(".")
        mapped = self._rules.resolve.get((host, port))
        target_port = port if mapped is None else mapped[1]
        addresses = await self._resolve(host, port) if mapped is None else (mapped[0],)
        if not self._rules.allows(host, port):
            _refuse_private(host, port, addresses)
        return tuple((address, target_port) for address in addresses)


def _refuse_private(host: str, port: int, addresses: Iterable[str]) -> None:
    for address in addresses:
        # a scope id ("fe80::1%eth0") is no part of the address
        if not is_public(ipaddress.ip_address(address.partition("%")[0])):
            raise PrivateAddress(host, port, address)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """A network backend that connects to checked addresses only."""

    def __init__(self, guard: Guard, inner: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._guard = guard
        self._inner = inner or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first checked address that answers."""
        try:
            async with asyncio.timeout(timeout):
                return await self._connect(host, port, local_address, socket_options)
        except TimeoutError as late:
            raise httpcore.ConnectTimeout(
                f"no connection to {host}:{port} in {timeout} s"
            ) from late
        except socket.gaierror as unknown:
            raise httpcore.ConnectError(f"{host} has no address: {unknown.strerror}") from unknown

    async def _connect(
        self,
        host: str,
        port: int,
        local_address: str | None,
        options: Iterable[httpcore.SOCKET_OPTION] | None,
    ) -> httpcore.AsyncNetworkStream:
        last: Exception = httpcore.ConnectError(f"{host} has no address")
        for address, at in await self._guard.endpoints(host, port):
            try:
                return OrderedStream(
                    await self._inner.connect_tcp(address, at, None, local_address, options)
                )
            except (httpcore.ConnectError, OSError) as failed:
                last = failed
        raise httpcore.ConnectError(f"{host}:{port}: {last}") from last

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Sources are never reached through a socket file."""
        raise PrivateAddress(path, 0, path)

    async def sleep(self, seconds: float) -> None:
        """Wait; the pool calls this between its own connection attempts."""
        await asyncio.sleep(seconds)
