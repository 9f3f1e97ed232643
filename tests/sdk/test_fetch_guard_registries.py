"""The special-purpose address registries (RFC 6890 and its updates, as of 2025), entry by entry."""

from __future__ import annotations

import ipaddress

import pytest

from prw_sdk.fetch.guard import AddressRules, Guard, PrivateAddress, is_public

# name: block, globally reachable or not, as the registry says
IPV4 = {
    "this network (RFC 791)": ("0.0.0.0/8", False),
    "private use (RFC 1918) a": ("10.0.0.0/8", False),
    "shared address space (RFC 6598)": ("100.64.0.0/10", False),
    "loopback (RFC 1122)": ("127.0.0.0/8", False),
    "link-local (RFC 3927)": ("169.254.0.0/16", False),
    "private use (RFC 1918) b": ("172.16.0.0/12", False),
    "IETF protocol assignments (RFC 6890)": ("192.0.0.0/24", False),
    "documentation (RFC 5737) 1": ("192.0.2.0/24", False),
    "AS112-v4 (RFC 7535)": ("192.31.196.0/24", True),
    "AMT (RFC 7450)": ("192.52.193.0/24", True),
    "deprecated 6to4 relay anycast (RFC 7526)": ("192.88.99.0/24", False),
    "private use (RFC 1918) c": ("192.168.0.0/16", False),
    "direct delegation AS112 (RFC 7534)": ("192.175.48.0/24", True),
    "benchmarking (RFC 2544)": ("198.18.0.0/15", False),
    "documentation (RFC 5737) 2": ("198.51.100.0/24", False),
    "documentation (RFC 5737) 3": ("203.0.113.0/24", False),
    "multicast (RFC 5771)": ("224.0.0.0/4", False),
    "reserved (RFC 1112)": ("240.0.0.0/4", False),
    "limited broadcast (RFC 8190)": ("255.255.255.255/32", False),
}
# Of 192.0.0.0/24 and 2001::/23 the registries call some addresses reachable that no web site has (anycast of PCP and
# TURN, identifiers of ORCHID and drones): they stay closed. Of an embedding the inner address counts.
IPV6 = {
    "loopback (RFC 4291)": ("::1/128", False),
    "unspecified (RFC 4291)": ("::/128", False),
    "IPv4-compatible, deprecated (RFC 4291)": ("::/96", False),
    "IPv4-translated (RFC 2765)": ("::ffff:0:0:0/96", False),
    "local-use translation (RFC 8215)": ("64:ff9b:1::/48", False),
    "discard-only (RFC 6666)": ("100::/64", False),
    "dummy prefix (RFC 9780)": ("100:0:0:1::/64", False),
    "IETF protocol assignments (RFC 2928)": ("2001::/23", False),
    "PCP anycast (RFC 7723)": ("2001:1::1/128", False),
    "TURN anycast (RFC 8155)": ("2001:1::2/128", False),
    "DNS-SD anycast (RFC 9665)": ("2001:1::3/128", False),
    "benchmarking (RFC 5180)": ("2001:2::/48", False),
    "AMT (RFC 7450)": ("2001:3::/32", True),
    "AS112-v6 (RFC 7535)": ("2001:4:112::/48", True),
    "deprecated ORCHID (RFC 4843)": ("2001:10::/28", False),
    "ORCHIDv2 (RFC 7343)": ("2001:20::/28", False),
    "drone remote identification (RFC 9374)": ("2001:30::/28", False),
    "documentation (RFC 3849)": ("2001:db8::/32", False),
    "direct delegation AS112 (RFC 7534)": ("2620:4f:8000::/48", True),
    "documentation (RFC 9637)": ("3fff::/20", False),
    "segment routing SIDs (RFC 9602)": ("5f00::/16", False),
    "unique local (RFC 4193)": ("fc00::/7", False),
    "link-local (RFC 4291)": ("fe80::/10", False),
    "site-local, deprecated (RFC 3879)": ("fec0::/10", False),
    "multicast (RFC 4291)": ("ff00::/8", False),
    "never allocated": ("4000::/3", False),
    "reserved by IETF": ("8000::/3", False),
}
_TABLE = [(name, *row) for name, row in (IPV4 | IPV6).items()]
_INNER = {"public": ("93.184.215.14", True), "private": ("10.0.0.1", False)}
_INNER |= {"metadata": ("169.254.169.254", False), "shared": ("100.100.100.200", False)}


@pytest.mark.parametrize(
    ("block", "is_reachable"), [row[1:] for row in _TABLE], ids=[row[0] for row in _TABLE]
)
def test_every_block_of_the_registries_is_open_or_closed_as_they_say(
    block: str, is_reachable: bool
) -> None:
    """At its first address, its last, and one in between."""
    net = ipaddress.ip_network(block)
    middle = net[net.num_addresses // 2 + (3 if net.num_addresses > 8 else 0)]
    for address in (net[0], middle, net[-1]):
        assert is_public(address) is is_reachable, str(address)


def _in(prefix: str, inner: str, shift: int = 0) -> ipaddress.IPv6Address:
    """An IPv4 address inside an IPv6 one."""
    start = int(ipaddress.IPv6Address(prefix))
    return ipaddress.IPv6Address(start | int(ipaddress.IPv4Address(inner)) << shift)


@pytest.mark.parametrize(("inner", "is_reachable"), _INNER.values(), ids=_INNER.keys())
def test_an_address_inside_another_counts_as_what_it_is(inner: str, is_reachable: bool) -> None:
    """Mapped (RFC 4291), 6to4 (RFC 3056) and NAT64 (RFC 6052): the inner address is the one that is reached."""
    assert is_public(_in("::ffff:0:0", inner)) is is_reachable
    assert is_public(_in("2002::", inner, 80)) is is_reachable
    assert is_public(_in("64:ff9b::", inner)) is is_reachable


def test_teredo_is_closed_whoever_is_inside() -> None:
    """RFC 4380: its server and its client are both IPv4 addresses, and neither is the one that answers for a name."""
    client = int(ipaddress.IPv4Address("93.184.215.14")) ^ 0xFFFFFFFF
    server = int(ipaddress.IPv4Address("93.184.215.14"))
    start = int(ipaddress.IPv6Address("2001::"))
    assert not is_public(ipaddress.IPv6Address(start | server << 64 | client))


@pytest.mark.parametrize(
    "address",
    ["2606:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2001:4860:4860::8888", "8.8.8.8"],
)
def test_the_rest_is_public(address: str) -> None:
    """Also beside closed blocks."""
    assert is_public(ipaddress.ip_address(address))


async def test_a_name_that_is_rebound_between_two_connections_is_refused_at_the_second() -> None:
    """The first answer is public and the second is not: each connection is checked for itself."""
    answers = iter([("93.184.215.14",), ("127.0.0.1",)])

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return next(answers)

    guard = Guard(AddressRules(), resolve)
    assert await guard.endpoints("shop.example", 443) == (("93.184.215.14", 443),)
    with pytest.raises(PrivateAddress, match=r"127\.0\.0\.1"):
        await guard.endpoints("shop.example", 443)
