"""Connections: TLS and HTTP/2, reuse and what ends it, IPv6, and a new host's own rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import HttpNet, NetConfig
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.polite import HostGates, Politeness, user_agent
from prw_sdk.fetch.retry import RetryPolicy
from tests.sdk.connections import Authority, Peer, kept_alive, listening, talk_http2
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer, redirect, serving

SHOP = "shop.example"


def config(peer: Peer, port: int, *, allow: str = SHOP) -> NetConfig:
    """May reach the peer as the shop at that port."""
    rules = AddressRules(frozenset({allow}), {(SHOP, port): ("127.0.0.1", peer.port)})
    retry = RetryPolicy(attempts=3, base=0.001, cap=0.01, patience=5.0)
    return NetConfig(user_agent("ops@example.org"), rules, retry=retry)


@asynccontextmanager
async def fetching(settings: NetConfig) -> AsyncIterator[HttpNet]:
    """A net with those settings, closed at the end."""
    net = HttpNet(settings, HostGates(Politeness(1000, 16)))
    try:
        yield net
    finally:
        await net.aclose()


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority that this process trusts, as an operator says it: by SSL_CERT_FILE."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


async def test_http_2_is_spoken_where_it_is_offered(authority: Authority) -> None:
    """Over TLS, many pages on one connection."""
    async with (
        listening(talk_http2, authority.server(SHOP, "h2", "http/1.1")) as peer,
        fetching(config(peer, 443)) as net,
    ):
        peer.pages |= {f"/{n}": [f"page {n}".encode()] for n in range(5)}
        bodies = [(await net.get(f"https://{SHOP}/{n}", role="page")).body for n in range(5)]
        assert bodies == [f"page {n}".encode() for n in range(5)]
        assert peer.connections == 1


@pytest.mark.parametrize("answers", [1, 2], ids=["short", "reset"])
async def test_a_body_that_is_cut_short_over_http_2_is_no_evidence(
    authority: Authority, answers: int
) -> None:
    """A stream that ends early, or is reset: it is asked for again."""
    async with (
        listening(talk_http2, authority.server(SHOP, "h2")) as peer,
        fetching(config(peer, 443)) as net,
    ):
        peer.pages["/cut"], peer.reset = [b"half"] * answers * 3, {"/cut"}
        with pytest.raises(FetchFailed) as failed:
            await net.get(f"https://{SHOP}/cut", role="page")
        assert failed.value.outcome in (Outcome.TRUNCATED, Outcome.NETWORK)
        assert peer.asked.count("/cut") == 3


async def test_an_unknown_authority_is_not_trusted(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked of a server that cannot show who it is."""
    async with listening(tls=authority.server(SHOP)) as peer:
        monkeypatch.delenv("SSL_CERT_FILE")
        async with fetching(config(peer, 443)) as net:
            with pytest.raises(FetchFailed):
                await net.get(f"https://{SHOP}/", role="page")
        assert peer.asked == []


async def test_a_certificate_of_another_name_is_not_trusted(authority: Authority) -> None:
    """The name is the one that was asked for, wherever `resolve` leads."""
    async with (
        listening(tls=authority.server("other.example")) as peer,
        fetching(config(peer, 443)) as net,
    ):
        with pytest.raises(FetchFailed):
            await net.get(f"https://{SHOP}/", role="page")
        assert peer.asked == []


async def test_a_connection_is_kept_for_the_next_page() -> None:
    """Robots rules and five pages over one."""
    async with listening() as peer, fetching(config(peer, 80)) as net:
        peer.pages["/a"] = [kept_alive(b"a")]
        for _ in range(5):
            await net.get(f"http://{SHOP}/a", role="page")
        assert (peer.connections, len(peer.asked)) == (1, 6)


async def test_a_connection_that_the_server_closed_is_no_failure() -> None:
    """A shop that restarts between two pages costs nothing but a new connection."""
    async with listening() as peer, fetching(config(peer, 80)) as net:
        peer.pages["/a"], peer.reset = [kept_alive(b"a")], {"/a"}
        for _ in range(3):
            assert (await net.get(f"http://{SHOP}/a", role="page")).body == b"a"
        assert peer.connections == 3


async def test_a_cut_body_poisons_no_later_page() -> None:
    """The connection it came on is not used again."""
    async with listening() as peer, fetching(config(peer, 80)) as net:
        peer.pages |= {"/cut": [kept_alive(b"half", stated=100)], "/b": [kept_alive(b"whole")]}
        peer.reset = {"/cut"}
        with pytest.raises(FetchFailed) as failed:
            await net.get(f"http://{SHOP}/cut", role="page")
        assert failed.value.outcome is Outcome.TRUNCATED
        assert (await net.get(f"http://{SHOP}/b", role="page")).body == b"whole"


@pytest.mark.parametrize("surplus", [b"</html>", kept_alive(b"of another page")])
async def test_bytes_beyond_the_stated_length_are_never_taken_for_the_next_page(
    surplus: bytes,
) -> None:
    """A length that was counted in characters, or an answer that nobody asked for."""
    async with listening() as peer, fetching(config(peer, 80)) as net:
        peer.pages |= {
            "/a": [kept_alive(b"stated" + surplus, stated=6)],
            "/b": [kept_alive(b"the page itself")],
        }
        with_surplus = await _body_or_failure(net, "/a")
        assert with_surplus in (b"stated", Outcome.TRUNCATED, Outcome.UNDECODABLE)
        assert await _body_or_failure(net, "/b") == b"the page itself"


async def test_an_answer_that_comes_while_nobody_asks_is_never_taken_for_the_next_page() -> None:
    """A connection that was left idle and is not quiet is not used again."""
    is_read, sent = asyncio.Event(), asyncio.Event()

    async def talk(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ")[1].decode()
            writer.write(peer.take(path))
            if path == "/a":
                await is_read.wait()
                writer.write(kept_alive(b"of another page"))
                sent.set()

    async with listening(talk) as peer, fetching(config(peer, 80)) as net:
        peer.pages |= {"/a": [kept_alive(b"a")], "/b": [kept_alive(b"the page itself")]}
        assert (await net.get(f"http://{SHOP}/a", role="page")).body == b"a"
        is_read.set()
        await sent.wait()
        assert (await net.get(f"http://{SHOP}/b", role="page")).body == b"the page itself"
        assert peer.asked.count("/b") == 1


async def _body_or_failure(net: HttpNet, path: str) -> bytes | Outcome:
    try:
        return (await net.get(f"http://{SHOP}{path}", role="page")).body
    except FetchFailed as failed:
        return failed.outcome


async def test_a_redirect_to_another_host_is_under_that_hosts_rules(
    site: Site, net: HttpNet
) -> None:
    """Its robots.txt is asked before anything of it is."""
    with serving() as other:
        forbidding = b"User-agent: *\nDisallow: /closed\n"
        other.serve("/robots.txt", answer(forbidding, content_type="text/plain"))
        other.serve("/closed/1", answer(b"x"))
        rules = AddressRules(frozenset({"127.0.0.1"}))
        async with fetching(replace(net_config(site), rules=rules)) as both:
            with pytest.raises(FetchFailed) as failed:
                await both.get(site.serve("/away", redirect(other.url("/closed/1"))), role="page")
            assert failed.value.outcome is Outcome.ROBOTS_FORBIDDEN
            assert (other.asked["/robots.txt"], other.asked["/closed/1"]) == (1, 0)
            part = await both.get(
                site.serve("/open", redirect(other.serve("/open/1", answer(b"y")))), role="page"
            )
            assert part.url_reached == other.url("/open/1")


@pytest.mark.parametrize("allow", ["[::1]:{port}", "[::1]", "::1"])
async def test_an_ipv6_loopback_address_is_reached_by_leave_only(allow: str) -> None:
    """Written in brackets, as in an address of a page."""
    async with listening(host="::1") as peer:
        peer.pages["/a"] = [kept_alive(b"a")]
        url = f"http://[::1]:{peer.port}/a"
        async with fetching(config(peer, 80)) as stranger:
            with pytest.raises(FetchFailed, match=r'add "\[::1\]:\d+" to') as failed:
                await stranger.get(url, role="page")
            assert failed.value.outcome is Outcome.PRIVATE_ADDRESS
        assert peer.connections == 0
        async with fetching(config(peer, 80, allow=allow.format(port=peer.port))) as net:
            assert (await net.get(url, role="page")).body == b"a"


async def test_a_pause_that_one_page_asked_for_is_kept_by_every_page_of_the_host(
    site: Site, net: HttpNet
) -> None:
    """A 429 storm ends with its first answer (replay rule 12)."""
    busy = answer(status=429, headers={"Retry-After": "3600"})
    with pytest.raises(FetchFailed) as first:
        await net.get(site.serve("/a", busy), role="page")
    assert first.value.outcome is Outcome.RATE_LIMITED
    before = len(site.requests)
    for _ in range(20):
        with pytest.raises(FetchFailed) as later:
            await net.get(site.serve("/b", answer(b"x")), role="page")
        assert later.value.outcome is Outcome.HOST_BUSY
        assert later.value.retry_after is not None
        assert 3500 < later.value.retry_after.total_seconds() <= 3600
    assert len(site.requests) == before
