"""Answers made to harm the collector: every one is an outcome with a name, and none is remembered or leaks."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import pytest

from prw_sdk.evidence import Part
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.polite import HostGates, Politeness
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer, redirect

LONG_LABEL = "a" * 70


@pytest.fixture
async def net(site: Site) -> AsyncIterator[HttpNet]:
    """A net that may reach the site."""
    made = HttpNet(net_config(site), HostGates(Politeness(1000, 16)))
    yield made
    await made.aclose()


async def failure(net: HttpNet, url: str) -> FetchFailed:
    """How a fetch fails."""
    with pytest.raises(FetchFailed) as failed:
        await net.get(url, role="page")
    return failed.value


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1",
        "http://[x/",
        f"http://{LONG_LABEL}.example/",
        "http://xn--a/",
        "http://shop.example/\ud800",
        "http://shop.example/" + "a" * 4100,
        "http://user:hidden@[::1/",
    ],
)
async def test_an_address_that_is_none_is_rejected_by_name(net: HttpNet, url: str) -> None:
    """BAD_URL, never an exception of some library; and no user information in the words."""
    failed = await failure(net, url)
    assert failed.outcome is Outcome.BAD_URL
    assert "hidden" not in f"{failed} {failed.url}"


@pytest.mark.parametrize(
    "to",
    ["//[", "http://[x", f"http://{LONG_LABEL}.example/", "javascript:1", "/" + "a" * 4100],
)
async def test_a_redirect_to_no_address_is_rejected_by_name(
    net: HttpNet, site: Site, to: str
) -> None:
    """What the source writes into Location decides nothing but this one target's end."""
    failed = await failure(net, site.serve("/r", redirect(to)))
    assert failed.recovery in (Outcome.BAD_URL.recovery, Outcome.NETWORK.recovery)


@pytest.mark.parametrize("wait", ["--5", "9" * 5000, "-", "5-", "1e999", "\u00b2"])
async def test_a_senseless_retry_after_is_no_failure_of_ours(
    net: HttpNet, site: Site, wait: str
) -> None:
    """The source's 503 stays a 503."""
    url = site.serve("/busy", answer(status=503, headers={"Retry-After": wait}))
    assert (await failure(net, url)).code == "UPSTREAM_503"


async def test_many_gzip_members_are_read_in_a_loop(net: HttpNet, site: Site) -> None:
    """Thousands of empty members in one answer exhaust no stack."""
    body = gzip.compress(b"") * 5000 + gzip.compress(b"end")
    url = site.serve("/members", answer(body, headers={"Content-Encoding": "gzip"}))
    assert (await net.get(url, role="page")).body == b"end"


async def test_no_cookie_is_ever_sent_back(net: HttpNet, site: Site) -> None:
    """A page is what anybody gets, and a source cannot grow what we send it."""
    first = site.serve("/first", answer(b"x", headers={"Set-Cookie": "a=b; Path=/"}))
    await net.get(first, role="page")
    await net.get(site.serve("/second", answer(b"x")), role="page")
    assert not [headers for _, headers in site.requests if "cookie" in headers]


async def test_user_information_of_an_address_is_in_no_failure(net: HttpNet, site: Site) -> None:
    """robots.txt forbids the page; the refusal names its address without the password."""
    rules = answer(b"User-agent: *\nDisallow: /private\n", content_type="text/plain")
    site.serve("/robots.txt", rules)
    failed = await failure(net, f"http://user:hidden@127.0.0.1:{site.port}/private/1")
    assert failed.outcome is Outcome.ROBOTS_FORBIDDEN
    assert "hidden" not in f"{failed} {failed.url}"


@pytest.mark.parametrize("label", ["idna", "undefined", "unicode_escape", "punycode", "zlib", "\0"])
async def test_a_codec_that_is_no_charset_is_not_used(net: HttpNet, site: Site, label: str) -> None:
    """Neither a source's label nor a submitted one makes reading fail, or makes escapes of text."""
    page = answer(b"a \\ud800", content_type=f"text/html; charset={label.strip(chr(0))}")
    part = await net.get(site.serve("/labelled", page), role="page")
    assert part.text() == "a \\ud800"
    named = Part("page", "", b"a \\ud800", "text/html", "u", "u", 200, part.fetched_at)
    object.__setattr__(named, "charset_used", label)
    assert named.text() == "a \\ud800"
