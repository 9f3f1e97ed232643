"""Which addresses a source may lead to."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import httpcore
import pytest

from prw_sdk.fetch.guard import AddressRules, Guard, GuardedBackend, PrivateAddress, is_public


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",  # noqa: S104  # an address to refuse
        "169.254.169.254",
        "168.63.129.16",
        "100.64.0.1",
        "100.100.100.200",
        "172.16.0.1",
        "192.168.1.1",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2001:db8::1",
    ],
)
def test_addresses_that_are_not_public_are_known_as_such(address: str) -> None:
    """Private, loopback, link-local, shared, multicast, metadata, and IPv4 hidden in IPv6."""
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"]
)
def test_public_addresses_are_known_as_such(address: str) -> None:
    """Also where an IPv4 address is mapped into IPv6."""
    assert is_public(ipaddress.ip_address(address))


class Names:
    """A resolver whose answers change with each question."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> tuple[str, ...]:
        """The next answer."""
        self.asked += 1
        return tuple(self.answers[min(self.asked, len(self.answers)) - 1])


async def test_a_name_with_one_private_address_is_refused_whole() -> None:
    """A public address beside it does not help."""
    guard = Guard(AddressRules(), Names(["93.184.215.14", "10.0.0.1"]))
    with pytest.raises(PrivateAddress, match="allow_private"):
        await guard.endpoints("shop.example", 443)


@pytest.mark.parametrize("allowed", ["shop.example", "shop.example:8080"])
async def test_settings_allow_a_name_or_a_name_with_its_port(allowed: str) -> None:
    """`allow_private` is by name, and may be narrowed to one port."""
    guard = Guard(AddressRules(frozenset({allowed})), Names(["127.0.0.1"]))
    assert await guard.endpoints("Shop.Example.", 8080) == (("127.0.0.1", 8080),)


async def test_an_allowed_port_allows_no_other_port() -> None:
    """A name with a port allows that port alone."""
    guard = Guard(AddressRules(frozenset({"shop.example:8080"})), Names(["127.0.0.1"]))
    with pytest.raises(PrivateAddress):
        await guard.endpoints("shop.example", 80)


async def test_resolve_maps_an_endpoint_and_asks_nobody() -> None:
    """As curl's --resolve, with a port of its own."""
    names = Names(["203.0.113.9"])
    rules = AddressRules(frozenset({"shop.example"}), {("shop.example", 80): ("127.0.0.1", 1234)})
    assert await Guard(rules, names).endpoints("shop.example", 80) == (("127.0.0.1", 1234),)
    assert names.asked == 0


async def test_resolve_alone_allows_no_private_address() -> None:
    """What is private stays to be allowed by name."""
    rules = AddressRules(resolve={("shop.example", 80): ("127.0.0.1", 1234)})
    with pytest.raises(PrivateAddress):
        await Guard(rules).endpoints("shop.example", 80)


class Recorded(httpcore.AsyncNetworkBackend):
    """A network that only notes where it was asked to connect."""

    def __init__(self) -> None:
        self.connected: list[tuple[str, int]] = []

    async def connect_tcp(
        self, host: str, port: int, *args: object, **kwargs: object
    ) -> httpcore.AsyncNetworkStream:
        """Note the endpoint."""
        self.connected.append((host, port))
        return httpcore.AsyncNetworkStream()


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """A name that changes its answer after the check (DNS rebinding) is not asked again."""
    names, network = Names(["93.184.215.14"], ["10.0.0.1"]), Recorded()
    await GuardedBackend(Guard(AddressRules(), names), network).connect_tcp("shop.example", 443)
    assert network.connected == [("93.184.215.14", 443)]
    assert names.asked == 1


async def test_a_socket_file_is_never_a_source() -> None:
    """There is no other way around the guard."""
    with pytest.raises(PrivateAddress):
        await GuardedBackend(Guard(AddressRules())).connect_unix_socket("/run/x.sock")
