"""The odd corners of HTTP: informational and partial answers, huge headers, slow bodies, names and addresses."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from prw_sdk.fetch import address
from prw_sdk.fetch.address import BadAddress
from prw_sdk.fetch.connector import GuardedConnector
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import HttpNet, NetConfig
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.polite import HostGates, Politeness
from tests.sdk.connections import ROBOTS, Peer, kept_alive, listening
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer, redirect

MANNERS = Politeness(1000, 16)


@asynccontextmanager
async def fetching(config: NetConfig) -> AsyncIterator[HttpNet]:
    """A net with those settings."""
    net = HttpNet(config, HostGates(MANNERS))
    try:
        yield net
    finally:
        await net.aclose()


async def failure(net: HttpNet, url: str) -> FetchFailed:
    """How a fetch fails."""
    with pytest.raises(FetchFailed) as failed:
        await net.get(url, role="page")
    return failed.value


async def test_a_part_of_a_page_is_no_page(site: Site, net: HttpNet) -> None:
    """Nobody asked for a range, so a 206 is a body that is not whole."""
    url = site.serve("/a", answer(b"half", status=206), answer(b"whole"))
    assert (await net.get(url, role="page")).body == b"whole"


async def test_an_informational_answer_is_not_the_answer(site: Site, net: HttpNet) -> None:
    """Early hints come before it (RFC 8297)."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    progress = b"HTTP/1.1 100 Continue\r\n\r\n"
    url = site.serve("/a", progress + hints + answer(b"the page"))
    part = await net.get(url, role="page")
    assert (part.http_status, part.body) == (200, b"the page")


async def test_switching_to_another_protocol_is_no_answer(site: Site, net: HttpNet) -> None:
    """We asked for none."""
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    assert (await failure(net, site.serve("/a", upgrade))).status in (101, None)


async def test_long_headers_are_read_up_to_a_bound(site: Site, net: HttpNet) -> None:
    """A content security policy of sixteen kilobytes is a fact of life; a megabyte is not."""
    policy = {"Content-Security-Policy": "x" * 16_000, "ETag": "y" * 20_000}
    part = await net.get(site.serve("/a", answer(b"x", headers=policy)), role="page")
    assert len(dict(part.headers)["etag"]) == 8192
    huge = answer(b"x", headers={"X-Huge": "x" * 1_000_000})
    assert (await failure(net, site.serve("/b", huge))).outcome in (
        Outcome.UNDECODABLE,
        Outcome.NETWORK,
    )
    many = answer(b"x", headers={f"X-{number}": "1" for number in range(5000)})
    assert (await failure(net, site.serve("/c", many))).outcome in (
        Outcome.UNDECODABLE,
        Outcome.NETWORK,
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\0: x\r\n\r\n",
        b"",
    ],
    ids=["none", "status", "two-lengths", "negative", "length", "chunk", "zero", "nothing"],
)
async def test_what_is_no_http_is_a_passing_trouble_by_name(
    site: Site, net: HttpNet, raw: bytes
) -> None:
    """Never a part, and never an exception of some library."""
    failed = await failure(net, site.serve("/a", raw))
    assert failed.outcome in (Outcome.UNDECODABLE, Outcome.NETWORK, Outcome.TRUNCATED)


async def test_a_body_without_a_length_ends_with_its_connection(site: Site, net: HttpNet) -> None:
    """In an orderly way."""
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<p>whole</p>"
    assert (await net.get(site.serve("/a", raw), role="page")).body == b"<p>whole</p>"


async def test_a_body_without_a_length_whose_connection_breaks_is_not_whole() -> None:
    """A reset says that something is missing, where no length does."""

    async def reset(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while b"robots" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(kept_alive(ROBOTS))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>half")
        await writer.drain()
        made = writer.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    rules = AddressRules(frozenset({"127.0.0.1"}))
    async with listening(reset) as peer, fetching(_quick(rules)) as net:
        failed = await failure(net, f"http://127.0.0.1:{peer.port}/a")
    assert failed.outcome in (Outcome.TRUNCATED, Outcome.NETWORK)


def _quick(rules: AddressRules) -> NetConfig:
    return replace(net_config(Site()), rules=rules)


async def test_a_body_that_drips_is_given_up_with_the_pages_time(site: Site) -> None:
    """Each byte is in time, the page as a whole is not."""

    async def drip(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while b"robots" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(kept_alive(ROBOTS))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    rules = AddressRules(frozenset({"127.0.0.1"}))
    config = replace(net_config(site, total=0.4), rules=rules)
    async with listening(drip) as peer, fetching(config) as net:
        started = time.monotonic()
        failed = await failure(net, f"http://127.0.0.1:{peer.port}/a")
    assert failed.outcome is Outcome.TIMEOUT
    assert time.monotonic() - started < 4


async def test_redirects_spend_the_time_of_one_page(site: Site) -> None:
    """A chain of slow hops is one slow page."""
    config = replace(net_config(site, total=0.0), retry=replace(net_config(site).retry, attempts=1))
    async with fetching(config) as net:
        failed = await failure(net, site.serve("/a", redirect("/b")))
    assert failed.outcome in (Outcome.TIMEOUT, Outcome.ROBOTS_UNREACHABLE)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_every_redirect_is_followed_with_get(site: Site, net: HttpNet, status: int) -> None:
    """To the address as it is meant: relative, without a scheme, with spaces, with letters beyond ASCII."""
    site.serve("/caf%C3%A9%20x?q=%2F", answer(b"here"))
    for to in ("/caf\u00e9 x?q=%2F#top", f"//127.0.0.1:{site.port}/caf%C3%A9%20x?q=%2F"):
        part = await net.get(site.serve("/a", redirect_to(to, status)), role="page")
        assert part.url_reached == site.url("/caf%C3%A9%20x?q=%2F")


def redirect_to(to: str, status: int) -> bytes:
    """A redirect whose Location is written in UTF-8, as many servers do."""
    head = f"HTTP/1.1 {status} Moved\r\nConnection: close\r\nContent-Length: 0\r\nLocation: {to}\r\n\r\n"
    return head.encode()


@pytest.mark.parametrize("status", [300, 304, 305, 306])
async def test_other_statuses_of_their_kind_are_no_redirect(
    site: Site, net: HttpNet, status: int
) -> None:
    """Nor is one without a Location."""
    failed = await failure(net, site.serve("/a", redirect_to("/b", status)))
    assert (failed.outcome, failed.status) == (Outcome.REFUSED, status)
    bare = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert (await failure(net, site.serve("/c", bare))).status == 302


async def test_a_redirect_to_itself_with_another_answer_is_a_page(site: Site, net: HttpNet) -> None:
    """A page that first sets a cookie, and then serves whoever comes back."""
    url = site.serve("/a", redirect("/a"), answer(b"the page"))
    assert (await net.get(url, role="page")).body == b"the page"


async def test_a_name_in_letters_beyond_ascii_is_asked_for_in_ascii() -> None:
    """UTS 46; the same host as written with xn--."""
    async with listening() as peer:
        peer.pages["/a"] = [kept_alive(b"a")]
        ascii_name = "xn--bcher-kva.example"
        rules = AddressRules(frozenset({ascii_name}), {(ascii_name, 80): ("127.0.0.1", peer.port)})
        async with fetching(_quick(rules)) as net:
            for name in ("bücher.example", "BÜCHER.example", ascii_name, "bücher。example"):
                part = await net.get(f"http://{name}/a", role="page")
                assert part.url_reached == f"http://{ascii_name}/a"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("HTTP://Shop.Example:80", "http://shop.example/"),
        ("https://shop.example:443/a", "https://shop.example/a"),
        ("https://shop.example:8443/a", "https://shop.example:8443/a"),
        ("http://user:pw@shop.example/a", "http://shop.example/a"),
        ("http://shop.example/a b?c=d e", "http://shop.example/a%20b?c=d%20e"),
        ("http://shop.example/%7Ea%2Fb?c=%41", "http://shop.example/%7Ea%2Fb?c=%41"),
        ("http://shop.example/100%", "http://shop.example/100%25"),
        ("http://shop.example/a/../private/./b", "http://shop.example/private/b"),
        ("http://shop.example/a/%2E%2e/private", "http://shop.example/private"),
        ("http://shop.example/../../x/", "http://shop.example/x/"),
        ("http://shop.example/é", "http://shop.example/%C3%A9"),
        ("http://shop.example?q=1", "http://shop.example/?q=1"),
        ("http://[2606:4700::1111]:8080/a", "http://[2606:4700::1111]:8080/a"),
        ("http://[2606:4700:0:0::1111]/", "http://[2606:4700::1111]/"),
        ("  http://shop.example/a\n", "http://shop.example/a"),
        ("http://under_score.example/", "http://under_score.example/"),
    ],
)
def test_an_address_has_one_spelling(text: str, meant: str) -> None:
    """The one that goes over the wire, and that robots rules are asked about."""
    assert address.parse(text).text == meant


@pytest.mark.parametrize(
    "text",
    [
        "", "shop.example/a", "ftp://shop.example/", "http:///a", "http://", "http://shop..example/",
        "http://-shop.example/", "http://shop.example:99999/", "http://shop.example:x/",
        "http://[fe80::1%25eth0]/", "http://[1.2.3.4]/", "http://shop .example/", "http://a%00b/",
        "http://" + "a." * 127 + "aa/", "javascript:alert(1)", "//shop.example/",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    """Before anything is asked of anybody."""
    with pytest.raises(BadAddress):
        address.parse(text)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost"])
async def test_loopback_in_disguise_is_refused(host: str) -> None:
    """However the address is written, it is the one that it leads to that counts."""
    async with fetching(_quick(AddressRules())) as net:
        failed = await failure(net, f"http://{host}:1/a")
    assert failed.outcome in (Outcome.PRIVATE_ADDRESS, Outcome.ROBOTS_UNREACHABLE)


async def test_an_address_that_the_guard_did_not_see_is_never_connected_to(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a later aiohttp find its addresses in another way, it reaches nothing."""
    monkeypatch.setattr(GuardedConnector, "_resolve_host", aiohttp.TCPConnector._resolve_host)
    async with fetching(net_config(site)) as net:
        assert (await failure(net, site.url("/a"))).outcome is Outcome.PRIVATE_ADDRESS
    assert site.requests == []
