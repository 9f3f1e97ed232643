"""Manners: robots.txt, rate and concurrency of each host."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest

from prw_sdk.fetch import address
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.polite import HostGates, Politeness, RobotsAnswer, parse
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer, redirect
from tests.support.waiting import until

AGENT = "PRW-collector"


def robots(text: str) -> bytes:
    """A robots.txt."""
    return answer(text.encode(), content_type="text/plain")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_client_error_means_that_there_are_no_rules(status: int) -> None:
    """RFC 9309, section 2.3.1.3."""
    rules = parse(RobotsAnswer(status))
    assert rules is not None
    assert rules.can_fetch("http://a.example/x", AGENT)


@pytest.mark.parametrize("status", [None, 429, 500, 503])
def test_rules_that_cannot_be_reached_forbid_everything(status: int | None) -> None:
    """RFC 9309, section 2.3.1.4; and a host that is out of breath has not said yes."""
    assert parse(RobotsAnswer(status)) is None


async def test_what_robots_forbids_is_rejected_and_never_fetched(site: Site, net: HttpNet) -> None:
    """The group of our own name wins over the one for all."""
    site.serve(
        "/robots.txt",
        robots("User-agent: *\nAllow: /\n\nUser-agent: prw-collector\nDisallow: /no\n"),
    )
    url = site.serve("/no/page", answer(b"x"))
    with pytest.raises(FetchFailed) as caught:
        await net.get(url, role="page")
    assert caught.value.outcome is Outcome.ROBOTS_FORBIDDEN
    assert site.asked["/no/page"] == 0


async def test_a_redirect_into_a_forbidden_folder_is_not_followed(site: Site, net: HttpNet) -> None:
    """The rules hold on every hop."""
    site.serve("/robots.txt", robots("User-agent: *\nDisallow: /no\n"))
    url = site.serve("/yes", redirect("/no/page"))
    with pytest.raises(FetchFailed) as caught:
        await net.get(url, role="page")
    assert caught.value.outcome is Outcome.ROBOTS_FORBIDDEN
    assert site.asked["/no/page"] == 0


async def test_rules_are_asked_for_once_and_a_passing_trouble_is_asked_again(
    site: Site, net: HttpNet
) -> None:
    """However many targets wait for them."""
    site.serve("/robots.txt", answer(status=503), robots("User-agent: *\nAllow: /\n"))
    url = site.serve("/a", answer(b"x"))
    await asyncio.gather(*(net.get(url, role="page") for _ in range(5)))
    assert site.asked["/robots.txt"] == 2


async def test_unreachable_rules_put_the_target_off(site: Site, net: HttpNet) -> None:
    """It is no verdict about the target."""
    site.serve("/robots.txt", answer(status=500))
    with pytest.raises(FetchFailed) as caught:
        await net.get(site.serve("/a", answer(b"x")), role="page")
    assert caught.value.outcome is Outcome.ROBOTS_UNREACHABLE
    assert site.asked["/a"] == 0


async def test_rules_may_move(site: Site, net: HttpNet) -> None:
    """Redirects of robots.txt are followed (RFC 9309, section 2.3.1.2)."""
    site.serve("/robots.txt", redirect("/rules"))
    site.serve("/rules", robots("User-agent: *\nDisallow: /a\n"))
    with pytest.raises(FetchFailed) as caught:
        await net.get(site.serve("/a", answer(b"x")), role="page")
    assert caught.value.outcome is Outcome.ROBOTS_FORBIDDEN


async def test_a_crawl_delay_spaces_the_requests(site: Site, net: HttpNet) -> None:
    """It replaces a rate of ours that is quicker."""
    site.serve("/robots.txt", robots("User-agent: *\nCrawl-delay: 0.2\n"))
    url = site.serve("/a", answer(b"x"))
    started = time.monotonic()
    await asyncio.gather(*(net.get(url, role="page") for _ in range(4)))
    assert time.monotonic() - started >= 0.6


async def test_an_absurd_crawl_delay_is_capped(site: Site) -> None:
    """A day between two pages would stall a source for ever."""
    gates = HostGates(Politeness(1000, 1, max_crawl_delay=0.05))
    gates.follow_crawl_delay("a.example", 86_400)
    started = time.monotonic()
    for _ in range(3):
        async with gates.turn("a.example"):
            pass
    assert 0.1 <= time.monotonic() - started < 5


async def test_the_rate_of_a_host_is_kept(site: Site) -> None:
    """Requests are spaced evenly, without a burst at the start."""
    gates = HostGates(Politeness(rate_per_second=20, concurrency=10))
    started = time.monotonic()
    for _ in range(5):
        async with gates.turn("a.example"):
            pass
    assert time.monotonic() - started >= 0.2


async def test_two_sources_at_one_host_stay_within_its_concurrency(site: Site) -> None:
    """The limit is the host's, not the source's (replay rule 12)."""
    gates = HostGates(Politeness(1000, 2))
    nets = [HttpNet(net_config(site), gates) for _ in range(2)]
    url = site.serve("/a", answer(b"x"))
    await asyncio.gather(*(net.get(url, role="warm") for net in nets))
    site.gate, site.most_at_once = threading.Event(), 0
    gets = [asyncio.create_task(net.get(url, role="page")) for net in nets for _ in range(5)]
    await until(lambda: site.at_once == 2)
    site.gate.set()
    await asyncio.gather(*gets)
    assert site.most_at_once == 2
    for net in nets:
        await net.aclose()


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        # the longest match wins, whichever stands first (RFC 9309, section 2.2.2)
        (
            "User-agent: *\nDisallow: /intern/\nAllow: /intern/feed.xml",
            "/intern/feed.xml?page=2",
            True,
        ),
        ("User-agent: *\nDisallow: /intern/\nAllow: /intern/feed.xml", "/intern/x", False),
        ("User-agent: *\nAllow: /p\nDisallow: /p", "/p/1", True),
        ("User-agent: *\nAllow: /p/*.html$\nDisallow: /p/", "/p/1.html", True),
        ("User-agent: *\nAllow: /p/*.html$\nDisallow: /p/", "/p/1.html?x", False),
        ("User-agent: *\nDisallow:", "/p", True),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("\ufeffUser-agent: *\nDisallow: /p", "/p", False),
        ("user-AGENT : *\r\ndisALLOW : /p # not yet\r\n", "/p", False),
        ("User-agent: *\rDisallow: /p\r", "/p", False),
        ("User-agent: *\nDisallow: /caf%c3%a9", "/caf\u00e9", False),
        ("User-agent: *\nDisallow: /caf\u00e9", "/caf%C3%A9", False),
        ("User-agent: a\nUser-agent: prw-collector\nDisallow: /p", "/p", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: PRW-collector\nDisallow: /q", "/p", True),
        ("User-agent: prw-collector-2\nDisallow: /\n\nUser-agent: *\nAllow: /", "/p", True),
        ("Disallow: /p\nUser-agent: *\nAllow: /", "/p", True),
        ("<!doctype html><title>Not found</title><p>User-agent: *", "/p", True),
        ("", "/p", True),
        ("\0\xff\ufffd\nUser-agent: *\nDisallow: /p", "/p", False),
    ],
)
async def test_rules_mean_what_the_standard_says(
    site: Site, net: HttpNet, text: str, path: str, allowed: bool
) -> None:
    """Order, wildcards, end marks, marks and line ends, escapes, groups, and what is no rule at all."""
    site.serve("/robots.txt", robots(text))
    url = address.parse(site.url(path))
    if path != "/robots.txt":
        site.serve(url.path, answer(b"the page"))
    found: Outcome | None = None
    try:
        await net.get(site.url(path), role="page")
    except FetchFailed as failed:
        found = failed.outcome
    assert found is (None if allowed else Outcome.ROBOTS_FORBIDDEN)


def test_what_stands_beyond_the_bound_of_the_rules_is_not_read() -> None:
    """Half a mebibyte, as the standard allows (section 2.5); a rule that is cut there is none."""
    body = b"User-agent: *\nDisallow: /early\n" + b"# filler\n" * 70_000 + b"Disallow: /late\n"
    rules = parse(RobotsAnswer(200, body))
    assert rules is not None
    assert not rules.can_fetch("http://a.example/early", AGENT)
    assert rules.can_fetch("http://a.example/late", AGENT)


async def test_a_request_rate_spaces_the_requests_too(site: Site, net: HttpNet) -> None:
    """Ten in two seconds are one every fifth of a second, where that is slower than ours."""
    site.serve("/robots.txt", robots("User-agent: *\nRequest-rate: 10/2s\n"))
    url = site.serve("/a", answer(b"x"))
    started = time.monotonic()
    await asyncio.gather(*(net.get(url, role="page") for _ in range(4)))
    assert time.monotonic() - started >= 0.6


async def test_an_infinite_rate_spaces_nothing() -> None:
    """For a server of one's own: only the number at once is kept."""
    gates = HostGates(Politeness(math.inf, 1))
    started = time.monotonic()
    for _ in range(200):
        async with gates.turn("a.example"):
            pass
    assert time.monotonic() - started < 2
    gates.close()
