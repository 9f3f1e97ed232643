"""Finding pages: sitemaps, indexes, gzip, robots.txt, and taking up a walk that was cut off."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import pytest

from prw_plugin_schemaorg import SchemaOrg, sitemap
from prw_plugin_schemaorg.settings import SchemaOrgSettings
from prw_plugin_schemaorg.walk import COMPLETE, TooMuch
from prw_sdk.adapter import Batch, Checkpoint, Source
from prw_sdk.evidence import Part
from tests.plugins.nets import Missing, Pages

SITE = "https://shop.example"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
ADAPTER = SchemaOrg()


def urlset(*paths: str) -> bytes:
    """A sitemap of pages."""
    rows = "".join(
        f"<url><loc>\n {SITE}{path} </loc><lastmod>2026-01-01</lastmod></url>" for path in paths
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset {NS}>{rows}</urlset>'.encode()


def index(*paths: str) -> bytes:
    """A sitemap of sitemaps."""
    rows = "".join(f"<sitemap><loc>{SITE}{path}</loc></sitemap>" for path in paths)
    return f"<sitemapindex {NS}>{rows}</sitemapindex>".encode()


def walk(
    net: Pages, checkpoint: Checkpoint | None = None, **settings: object
) -> AsyncIterator[Batch]:
    """Plan the shop."""
    told = {"sitemaps": [f"{SITE}/sitemap.xml"]} | settings
    source = Source("src_test", SchemaOrgSettings.model_validate(told))
    return ADAPTER.plan(source, checkpoint, net)


async def planned(
    net: Pages, checkpoint: Checkpoint | None = None, **settings: object
) -> list[str]:
    """The paths that a plan holds, in its order."""
    batches = [batch async for batch in walk(net, checkpoint, **settings)]
    assert batches[-1].then == Checkpoint({"complete": True})
    return paths(batches)


def paths(batches: Sequence[Batch]) -> list[str]:
    """The paths of the batches' targets."""
    return [target.url.removeprefix(SITE) for batch in batches for target in batch.targets]


async def test_a_sitemap_is_walked_in_the_order_of_its_pages_ids() -> None:
    """Each page is one target, known under its address without fragment and tracking."""
    net = Pages({f"{SITE}/sitemap.xml": urlset("/p/b?utm_source=x#top", "/p/a", "/p/a#again")})
    batches = [batch async for batch in walk(net)]
    ids = [target.native_id for batch in batches for target in batch.targets]
    assert ids == [f"{SITE}/p/a", f"{SITE}/p/b"]


async def test_an_index_leads_to_its_sitemaps_whether_zipped_or_not() -> None:
    """Sitemaps may be gzip files; a page that two of them list is one target."""
    net = Pages(
        {
            f"{SITE}/sitemap.xml": index("/1.xml.gz", "/2.xml", "/sitemap.xml"),
            f"{SITE}/1.xml.gz": gzip.compress(urlset("/p/1", "/p/2")),
            f"{SITE}/2.xml": urlset("/p/2", "/p/3"),
        }
    )
    assert await planned(net) == ["/p/1", "/p/2", "/p/3"]
    assert len(net.asked) == len(set(net.asked))


@pytest.mark.parametrize(
    ("robots", "sitemap"),
    [
        (b"User-agent: *\nDisallow: /x\nSITEMAP: https://shop.example/maps/a.xml\n", "/maps/a.xml"),
        (b"User-agent: *\n", "/sitemap.xml"),
        (404, "/sitemap.xml"),
    ],
)
async def test_without_a_start_robots_txt_names_the_sitemaps(
    robots: bytes | int, sitemap: str
) -> None:
    """RFC 9309: Sitemap lines; without any the usual address."""
    net = Pages({f"{SITE}/robots.txt": robots, f"{SITE}{sitemap}": urlset("/p/1")})
    assert await planned(net, sitemaps=[], site=SITE) == ["/p/1"]


async def test_only_wanted_pages_of_the_shop_are_targets() -> None:
    """`include` and `exclude` are searched in the address; other sites' pages are never targets."""
    listed = urlset("/p/1", "/p/2?x", "/blog/1", "/p/old/3").replace(
        b"</urlset>", b"<url><loc>https://other.example/p/9</loc></url></urlset>"
    )
    net = Pages({f"{SITE}/sitemap.xml": listed})
    assert await planned(net, include=["/p/"], exclude=["/old/", r"\?"]) == ["/p/1"]
    assert await planned(net) == ["/blog/1", "/p/1", "/p/2?x", "/p/old/3"]


async def test_a_walk_that_was_cut_off_is_taken_up_after_its_last_batch() -> None:
    """Wherever a run ends, the next one plans exactly the rest, though pages came and went meanwhile."""
    sitemaps: dict[str, bytes | int] = {
        f"{SITE}/sitemap.xml": index("/1.xml", "/2.xml"),
        f"{SITE}/1.xml": urlset("/p/1", "/p/2", "/p/3"),
        f"{SITE}/2.xml": urlset("/p/4", "/p/3", "/p/5"),
    }
    whole = [batch async for batch in walk(Pages(sitemaps), batch_size=2)]
    for done in range(1, len(whole)):
        rest = await planned(Pages(sitemaps), whole[done - 1].then, batch_size=2)
        assert paths(whole[:done]) + rest == ["/p/1", "/p/2", "/p/3", "/p/4", "/p/5"]
    sitemaps[f"{SITE}/1.xml"] = urlset("/p/0", "/p/3")
    assert await planned(Pages(sitemaps), whole[0].then) == ["/p/3", "/p/4", "/p/5"]


async def test_after_a_complete_walk_the_next_run_starts_anew() -> None:
    """A complete checkpoint, and one whose sitemap is gone, skip nothing."""
    net = Pages({f"{SITE}/sitemap.xml": urlset("/p/1", "/p/2")})
    assert await planned(net, Checkpoint({"complete": True})) == ["/p/1", "/p/2"]
    lost = Checkpoint({"sitemap": f"{SITE}/gone.xml", "after": f"{SITE}/p/1"})
    assert await planned(net, lost) == ["/p/1", "/p/2"]


async def test_a_listed_sitemap_that_is_gone_stops_no_other() -> None:
    """Replay rule 13: a dead entry of an index is passed over, but a dead start is an error."""
    net = Pages(
        {f"{SITE}/sitemap.xml": index("/gone.xml", "/2.xml"), f"{SITE}/2.xml": urlset("/p/2")}
    )
    assert await planned(net) == ["/p/2"]
    with pytest.raises(Missing):
        await planned(Pages({}))


async def test_a_sitemap_that_fails_for_now_stops_the_plan() -> None:
    """Replay rule 4: on an ambiguous failure the walk ends there, to be taken up again."""
    sitemaps = {f"{SITE}/sitemap.xml": index("/1.xml", "/2.xml"), f"{SITE}/1.xml": urlset("/p/1")}
    batches = walk(Pages({**sitemaps, f"{SITE}/2.xml": 503}))
    reached = await anext(batches)
    assert reached.then == Checkpoint({"sitemap": f"{SITE}/1.xml", "after": f"{SITE}/p/1"})
    with pytest.raises(Missing):
        await anext(batches)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not xml",
        b"\x1f\x8b\x08broken",
        b"<html><body>consent</body></html>",
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>',
    ],
)
async def test_what_is_no_sitemap_lists_nothing(body: bytes) -> None:
    """Broken and hostile answers give no targets and read no files."""
    assert await planned(Pages({f"{SITE}/sitemap.xml": body})) == []


async def test_a_cut_off_sitemap_counts_as_far_as_it_goes() -> None:
    """Also one without its namespace, and a list in plain text."""
    cut = urlset("/p/1", "/p/2")[:-20].replace(NS.encode(), b"")
    assert await planned(Pages({f"{SITE}/sitemap.xml": cut})) == ["/p/1", "/p/2"]
    text = Pages({f"{SITE}/sitemap.xml": f"{SITE}/p/1\r\n{SITE}/p/2\n".encode()}, "text/plain")
    assert await planned(text) == ["/p/1", "/p/2"]


async def test_fetch_keeps_the_page_under_its_role() -> None:
    """One response a target, named as the census says."""
    net = Pages({f"{SITE}/sitemap.xml": urlset("/p/1"), f"{SITE}/p/1": b"<html>"})
    first = await anext(walk(net))
    fetched = await ADAPTER.fetch(first.targets[0], net)
    assert [part.role for part in fetched.parts] == ["page"]


@pytest.mark.parametrize("way", ["one sitemap", "an index", "a gzip bomb"])
async def test_what_is_not_followed_is_said_and_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The pages within the limits are planned, the checkpoint is complete, and then the run is told."""
    monkeypatch.setattr("prw_plugin_schemaorg.walk.MOST_SITEMAPS", 3)
    many = urlset(*(f"/p/{number:06}" for number in range(50_001)))
    bodies: dict[str, bytes | int] = {f"{SITE}/sitemap.xml": many}
    if way == "a gzip bomb":
        bodies = {f"{SITE}/sitemap.xml": gzip.compress(many + b" " * 60_000_000)}
    if way == "an index":
        bodies = {f"{SITE}/sitemap.xml": index("/a", "/b", "/c", "/d")}
        bodies |= {f"{SITE}/{name}": urlset(f"/p/{name}") for name in "abcd"}
    batches: list[Batch] = []
    with pytest.raises(TooMuch):
        await into(batches, walk(Pages(bodies), batch_size=1000))
    planned = sum(len(batch.targets) for batch in batches)
    assert planned == (2 if way == "an index" else 50_000)
    assert batches[-1].then == COMPLETE


async def into(batches: list[Batch], plan: AsyncIterator[Batch]) -> None:
    """Note every batch of a plan, also of one that fails."""
    async for batch in plan:
        batches.append(batch)  # noqa: PERF401 - a comprehension would lose what came before the failure


LAUGHTER = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "declared",
    ['<!ENTITY e9 SYSTEM "file:///etc/passwd">', f'<!ENTITY e0 "aaaaaaaaaa">{LAUGHTER}'],
)
def test_entities_of_a_sitemap_bring_in_nothing(declared: str) -> None:
    """Neither a file of ours nor the ten thousand million letters of a laughter of entities."""
    body = f"<!DOCTYPE u [{declared}]><urlset {NS}><url><loc>{SITE}/&e9;</loc></url></urlset>"
    now = datetime.now(UTC)
    part = Part("sitemap", "", body.encode(), "application/xml", SITE, SITE, 200, now)
    assert sitemap.parse(part).pages == (f"{SITE}/",)
