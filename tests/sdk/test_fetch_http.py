"""What a GET gives, what it refuses, and what it asks again, against a real server."""

from __future__ import annotations

import gzip
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.polite import HostGates, Politeness
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer, redirect, zipped

MANNERS = Politeness(1000, 16)


async def failure(net: HttpNet, url: str) -> FetchFailed:
    """How the fetch of that address fails."""
    with pytest.raises(FetchFailed) as caught:
        await net.get(url, role="page")
    return caught.value


async def test_an_answer_becomes_a_part_with_its_bytes_and_where_they_came_from(
    site: Site, net: HttpNet
) -> None:
    """Role, addresses, status, media type as served, allow-listed headers, digest."""
    headers = {"ETag": '"1"', "Set-Cookie": "session=secret"}
    url = site.serve("/a", answer(b"<p>caf\xc3\xa9</p>", headers=headers))
    part = await net.get(url + "#top", role="page")
    assert (part.role, part.url_asked, part.url_reached, part.http_status) == (
        "page",
        url,
        url,
        200,
    )
    assert part.media_type == "text/html; charset=utf-8"
    assert part.text() == "<p>café</p>"
    assert dict(part.headers) == {"content-type": part.media_type, "etag": '"1"'}
    assert part.fetched_at.tzinfo is UTC


async def test_the_collector_says_who_it_is_and_only_gets(site: Site, net: HttpNet) -> None:
    """An honest User-Agent with a contact, on robots.txt as well."""
    await net.get(site.serve("/a", answer(b"x")), role="page")
    agents = {headers["user-agent"] for _, headers in site.requests}
    assert len(agents) == 1
    assert agents.pop().startswith("PRW-collector/0.1.0 (+ops@example.org")


async def test_redirects_are_followed_by_hand_and_both_addresses_are_kept(
    site: Site, net: HttpNet
) -> None:
    """Relative ones too."""
    asked = site.serve("/old", redirect("/new?x=1"))
    site.serve("/new?x=1", answer(b"here"))
    part = await net.get(asked, role="page")
    assert (part.url_asked, part.url_reached) == (asked, site.url("/new?x=1"))


async def test_a_redirect_to_a_private_address_is_refused_and_never_asked_again(
    site: Site, net: HttpNet
) -> None:
    """The guard holds on every hop; the target is terminal."""
    failed = await failure(net, site.serve("/a", redirect("http://127.0.0.2:9/admin")))
    assert failed.outcome is Outcome.PRIVATE_ADDRESS
    assert site.asked["/a"] == 1


async def test_a_private_address_is_refused_before_anything_is_sent(site: Site) -> None:
    """Without leave in the settings, loopback is out of reach."""
    config = replace(net_config(site), rules=AddressRules())
    net = HttpNet(config, HostGates(MANNERS))
    assert (await failure(net, site.url("/a"))).outcome is Outcome.PRIVATE_ADDRESS
    assert site.requests == []
    await net.aclose()


async def test_redirects_that_do_not_end_are_rejected(site: Site, net: HttpNet) -> None:
    """A loop is no page."""
    failed = await failure(net, site.serve("/a", redirect("/a")))
    assert failed.outcome is Outcome.TOO_MANY_REDIRECTS


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "file:///etc/passwd", "/relative", "http://"])
async def test_only_absolute_web_addresses_are_fetched(net: HttpNet, url: str) -> None:
    """Everything else is a bad URL."""
    assert (await failure(net, url)).outcome is Outcome.BAD_URL


@pytest.mark.parametrize(
    "cut",
    [
        answer(b"half", stated_length=100),
        answer(b"5\r\nhello\r\n", headers={"Transfer-Encoding": "chunked"}),
        zipped(b"whole" * 100, cut=8),
        zipped(b"whole" * 100, cut=40),
    ],
    ids=["content-length", "chunked", "gzip-trailer", "gzip-data"],
)
async def test_a_body_that_is_cut_short_is_not_evidence_and_is_asked_for_again(
    site: Site, net: HttpNet, cut: bytes
) -> None:
    """Content-Length, chunks and gzip each say where a body ends."""
    url = site.serve("/a", cut, cut, answer(b"whole"))
    assert (await net.get(url, role="page")).body == b"whole"
    assert site.asked["/a"] == 3


async def test_a_body_that_stays_cut_short_is_a_failure_to_be_retried_later(
    site: Site, net: HttpNet
) -> None:
    """It never becomes a part."""
    failed = await failure(net, site.serve("/a", answer(b"half", stated_length=100)))
    assert failed.outcome is Outcome.TRUNCATED
    assert site.asked["/a"] == 3


async def test_gzip_is_decoded_with_all_its_members(site: Site, net: HttpNet) -> None:
    """What is kept are the decoded bytes."""
    body = gzip.compress(b"one ") + gzip.compress(b"two")
    url = site.serve("/a", answer(body, headers={"Content-Encoding": "gzip"}))
    assert (await net.get(url, role="page")).body == b"one two"


@pytest.mark.parametrize(
    "big", [answer(b"x" * 2000), zipped(b"x" * 100_000)], ids=["plain", "inflating"]
)
async def test_a_body_over_the_limit_is_not_read_to_its_end(site: Site, big: bytes) -> None:
    """The limit is on decoded bytes, so that a small answer cannot inflate without bound."""
    net = HttpNet(net_config(site, max_bytes=1000), HostGates(MANNERS))
    failed = await failure(net, site.serve("/a", big))
    assert failed.outcome is Outcome.TOO_LARGE
    assert site.asked["/a"] == 1
    await net.aclose()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_passing_trouble_is_asked_again_within_the_call(
    site: Site, net: HttpNet, status: int
) -> None:
    """429, 5xx and 408 (if_source_fetch)."""
    url = site.serve("/a", answer(status=status), answer(b"fine"))
    assert (await net.get(url, role="page")).body == b"fine"


@pytest.mark.parametrize("status", [400, 401, 403, 405, 451])
async def test_other_refusals_are_never_asked_again(site: Site, net: HttpNet, status: int) -> None:
    """Never retry a 4xx except 408 and 429 (if_source_fetch)."""
    failed = await failure(net, site.serve("/a", answer(status=status)))
    assert (failed.outcome, failed.code) == (Outcome.REFUSED, f"UPSTREAM_{status}")
    assert site.asked["/a"] == 1


@pytest.mark.parametrize(("status", "outcome"), [(404, Outcome.NOT_FOUND), (410, Outcome.GONE)])
async def test_what_is_gone_is_said_with_the_answer_that_says_so(
    site: Site, net: HttpNet, status: int, outcome: Outcome
) -> None:
    """A real 404 or 410 is evidence of absence."""
    failed = await failure(net, site.serve("/a", answer(b"gone", status=status)))
    assert failed.outcome is outcome
    assert failed.part is not None
    assert (failed.part.body, failed.part.http_status) == (b"gone", status)


async def test_a_wait_that_fits_the_run_is_waited_for(site: Site, net: HttpNet) -> None:
    """Retry-After is a floor under the jitter."""
    busy = answer(status=503, headers={"Retry-After": "1"})
    started = datetime.now(UTC)
    await net.get(site.serve("/a", busy, answer(b"fine")), role="page")
    assert datetime.now(UTC) - started >= timedelta(seconds=1)


async def test_a_wait_beyond_the_runs_patience_is_handed_on(site: Site, net: HttpNet) -> None:
    """The item is put off instead, for as long as the source asked."""
    busy = answer(status=503, headers={"Retry-After": "3600"})
    failed = await failure(net, site.serve("/a", busy))
    assert failed.retry_after == timedelta(hours=1)
    assert (failed.code, site.asked["/a"]) == ("UPSTREAM_503", 1)


async def test_a_page_that_takes_too_long_is_given_up(site: Site) -> None:
    """The total is for the whole page, redirects included."""
    net = HttpNet(net_config(site, total=0.3), HostGates(MANNERS))
    await net.get(site.serve("/warm", answer(b"x")), role="page")
    site.gate = threading.Event()
    failed = await failure(net, site.serve("/a", answer(b"late")))
    site.gate.set()
    assert failed.outcome is Outcome.TIMEOUT
    await net.aclose()


async def test_nobody_listening_is_a_network_failure(site: Site) -> None:
    """It may be retried."""
    config = replace(net_config(site), rules=AddressRules(frozenset({"127.0.0.1"})))
    net = HttpNet(config, HostGates(MANNERS))
    failed = await failure(net, "http://127.0.0.1:1/x")
    assert failed.outcome is Outcome.ROBOTS_UNREACHABLE
    await net.aclose()


async def test_credentials_go_to_their_host_alone_and_are_redacted(site: Site) -> None:
    """Neither a redirect target nor a part nor an error ever shows one."""
    with_secret = {"127.0.0.1": {"authorization": "Bearer s3cr3t-value"}}
    rules = AddressRules(
        frozenset({"127.0.0.1", "other.example"}),
        {("other.example", site.port): ("127.0.0.1", site.port)},
    )
    net = HttpNet(
        replace(net_config(site), credentials=with_secret, rules=rules), HostGates(MANNERS)
    )
    asked = site.serve("/a?key=s3cr3t-value", redirect(f"http://other.example:{site.port}/b"))
    site.serve("/b", answer(b"x", headers={"ETag": "s3cr3t-value"}))
    part = await net.get(asked.replace("http://", "http://me:pw@"), role="page")
    sent = [(path, headers.get("authorization")) for path, headers in site.requests]
    assert ("/a?key=s3cr3t-value", "Bearer s3cr3t-value") in sent
    assert ("/b", None) in sent
    assert "s3cr3t" not in repr(replace(part, body=b""))
    assert "me:pw" not in repr(part)
    failed = await failure(net, site.serve("/c?key=s3cr3t-value", answer(status=403)))
    assert "s3cr3t" not in f"{failed} {failed.url}"
    await net.aclose()
