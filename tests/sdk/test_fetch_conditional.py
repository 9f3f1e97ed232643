"""Asking whether an earlier answer still holds: a 304 cites the earlier bytes, or is a failure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from prw_sdk.evidence import Citation, Part
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from tests.sdk.misbehaving import Site, answer, redirect

TAG, DAY = '"v1"', "Mon, 30 Nov 2026 11:00:00 GMT"
BEFORE = datetime(2026, 11, 30, 11, 30, tzinfo=UTC)
PAGE = answer(b"as it was", headers={"ETag": TAG, "Last-Modified": DAY, "Cache-Control": "private"})


def unchanged(**headers: str) -> bytes:
    """A 304."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer(status=304, content_type=None, headers=named)


async def first(site: Site, net: HttpNet, then: bytes, *more: bytes) -> Part:
    """The part of the page's first answer; it answers otherwise from then on."""
    return await net.get(site.serve("/a", PAGE, then, *more), role="page")


def questions(site: Site, path: str = "/a") -> list[tuple[str | None, str | None]]:
    """What each request for that path asked about."""
    return [
        (headers.get("if-none-match"), headers.get("if-modified-since"))
        for asked, headers in site.requests
        if asked == path
    ]


async def test_an_answer_that_still_holds_cites_the_earlier_bytes(site: Site, net: HttpNet) -> None:
    """Its bytes, digest and charset; the moment and the headers are the new answer's."""
    earlier = await first(site, net, unchanged(ETag=TAG, Cache_Control="no-cache"))
    part = await net.get(site.url("/a"), role="page", earlier=earlier)
    assert questions(site) == [(None, None), (TAG, DAY)]
    assert (part.http_status, part.body, part.sha256) == (304, b"as it was", earlier.sha256)
    assert part.cites == Citation(earlier.fetched_at, earlier.sha256)
    assert (part.charset_used, part.media_type) == (earlier.charset_used, earlier.media_type)
    kept = dict(part.headers)
    assert (kept["etag"], kept["last-modified"], kept["cache-control"]) == (TAG, DAY, "no-cache")
    assert part.fetched_at > earlier.fetched_at


async def test_the_citation_is_the_one_that_the_caller_gives(site: Site, net: HttpNet) -> None:
    """And it is handed on from one 304 to the next, so that all cite the capture with the bytes."""
    citation = Citation(BEFORE, hashlib.sha256(b"as it was").hexdigest())
    earlier = replace(await first(site, net, unchanged()), cites=citation)
    part = await net.get(site.url("/a"), role="page", earlier=earlier)
    again = await net.get(site.url("/a"), role="page", earlier=part)
    assert (part.cites, again.cites) == (citation, citation)
    assert questions(site)[1:] == [(TAG, DAY)] * 2


async def test_an_answer_that_changed_is_a_part_of_its_own(site: Site, net: HttpNet) -> None:
    """With its own bytes, and nothing cited."""
    earlier = await first(site, net, answer(b"new", headers={"ETag": '"v2"'}))
    part = await net.get(site.url("/a"), role="page", earlier=earlier)
    assert (part.http_status, part.body, part.cites) == (200, b"new", None)


@pytest.mark.parametrize(
    "other",
    [{"ETag": '"v9"'}, {"ETag": 'W/"v9"'}, {"Last_Modified": "Mon, 30 Nov 2026 10:00:00 GMT"}],
)
async def test_a_304_about_other_bytes_is_asked_again_without_a_condition(
    site: Site, net: HttpNet, other: dict[str, str]
) -> None:
    """A cache between us and the source confirms what it holds, not what we hold."""
    earlier = await first(site, net, unchanged(**other), answer(b"whole"))
    part = await net.get(site.url("/a"), role="page", earlier=earlier)
    assert (part.body, part.cites) == (b"whole", None)
    assert questions(site) == [(None, None), (TAG, DAY), (None, None)]


async def test_a_weak_tag_confirms_the_same_bytes(site: Site, net: HttpNet) -> None:
    """If-None-Match is compared weakly (RFC 9110, section 13.1.2)."""
    earlier = await first(site, net, unchanged(ETag=f"W/{TAG}"))
    assert (await net.get(site.url("/a"), role="page", earlier=earlier)).http_status == 304


async def test_a_304_without_anything_to_cite_is_a_failure(site: Site, net: HttpNet) -> None:
    """Nobody asked; there are no bytes that it could stand for."""
    url = site.serve("/a", unchanged(ETag=TAG))
    with pytest.raises(FetchFailed) as failed:
        await net.get(url, role="page")
    assert (failed.value.outcome, failed.value.status) == (Outcome.REFUSED, 304)
    bare = Part("page", "", b"", "text/html", url, url, 200, BEFORE)
    with pytest.raises(FetchFailed):
        await net.get(url, role="page", earlier=bare)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"body": b"other bytes"},
        {"http_status": 404},
        {"url_reached": "http://other.example/a"},
        {"headers": ()},
    ],
    ids=["damaged", "absent", "of-another-address", "no-validator"],
)
async def test_nothing_is_asked_that_could_not_be_cited(
    site: Site, net: HttpNet, spoilt: dict[str, object]
) -> None:
    """Bytes that are not what their digest says, an absence, another address, no validator: asked for as a whole."""
    earlier = replace(await first(site, net, answer(b"whole")), **spoilt)  # type: ignore[arg-type]  # by name
    part = await net.get(site.url("/a"), role="page", earlier=earlier)
    assert (part.body, part.cites) == (b"whole", None)
    assert questions(site)[-1] == (None, None)


async def test_behind_a_redirect_the_address_reached_is_the_one_that_is_asked(
    site: Site, net: HttpNet
) -> None:
    """Validators belong to the address that gave them."""
    asked = site.serve("/old", redirect("/a"))
    site.serve("/a", PAGE, unchanged())
    earlier = await net.get(asked, role="page")
    part = await net.get(asked, role="page", earlier=earlier)
    assert (part.http_status, part.url_asked, part.url_reached) == (304, asked, site.url("/a"))
    assert questions(site, "/old") == [(None, None)] * 2
    assert questions(site) == [(None, None), (TAG, DAY)]


async def test_a_passing_trouble_is_asked_again_with_its_condition(
    site: Site, net: HttpNet
) -> None:
    """Retries ask the same question."""
    earlier = await first(site, net, answer(status=503), unchanged())
    assert (await net.get(site.url("/a"), role="page", earlier=earlier)).http_status == 304
    assert questions(site) == [(None, None), (TAG, DAY), (TAG, DAY)]


async def test_a_page_that_is_gone_is_gone_whatever_it_was(site: Site, net: HttpNet) -> None:
    """An absence is no citation."""
    earlier = await first(site, net, answer(b"gone", status=410))
    with pytest.raises(FetchFailed) as failed:
        await net.get(site.url("/a"), role="page", earlier=earlier)
    assert failed.value.outcome is Outcome.GONE
