"""A marketplace whose list moves while it is read: no offer is lost, and none counted twice."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from prw_plugin_marketplace_offers import MarketplaceOffers
from prw_plugin_marketplace_offers.settings import OffersSettings
from prw_plugin_marketplace_offers.walk import Incomplete
from prw_sdk.adapter import Batch, Checkpoint, NetFailed, Source
from prw_sdk.evidence import AdapterVersion, Capture, Part
from prw_sdk.testing.server import Site, answer, serving
from tests.plugins.collecting import collect, kept, read

URL = "https://api.bazaarline.example/offers"
SIZE = 4


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on loopback."""
    with serving() as running:
        yield running


def offer(number: int) -> dict[str, object]:
    """One offer; every third item has two sellers."""
    seller = {"name": f"Seller {number % 5}"}
    return {
        "id": f"o{number}",
        "title": f"Drive {number}",
        "seller": seller,
        "price": {"amount": number},
    }


class Market:
    """A list of offers that something happens to before each page is given."""

    def __init__(self, ids: list[int], happens: Callable[[list[int], int], None]) -> None:
        self.ids = ids
        self.happens = happens
        self.asked: list[str] = []

    async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
        """The page that the query asks for."""
        self.happens(self.ids, len(self.asked))
        self.asked.append(url)
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        start = int(query.get("offset", (int(query.get("page", 1)) - 1) * SIZE))
        here = [offer(number) for number in self.ids[start : start + SIZE]]
        body = json.dumps({"total": len(self.ids), "offers": here}).encode()
        return part(url, body, role)


def part(url: str, body: bytes, role: str = "offers") -> Part:
    """A page."""
    digest, now = sha256(body).hexdigest(), datetime.now(UTC)
    return Part(role, digest, body, "application/json", url, url, 200, now, charset_used="utf-8")


async def walk(
    net: object, checkpoint: Checkpoint | None = None, **settings: object
) -> tuple[set[str], list[Batch]]:
    """Plan and fetch everything: the keys of the listings that were read, and the batches."""
    adapter = MarketplaceOffers()
    given = OffersSettings.model_validate({"url": URL, "total": "/total", **settings})
    source = Source("src_bazaarline", given)
    keys: set[str] = set()
    batches = []
    async for batch in adapter.plan(source, checkpoint, net):  # type: ignore[arg-type]  # get alone is asked of it
        batches.append(batch)
        for target in batch.targets:
            fetched = await adapter.fetch(target, net)  # type: ignore[arg-type]  # as above
            capture = Capture(
                source.source_id,
                target.native_id,
                datetime.now(UTC),
                AdapterVersion(adapter.name, adapter.version),
                fetched.parts,
                adapter.config(source),
            )
            keys |= {record.listing_key for record in adapter.read(capture)}
    return keys, batches


def key(number: int) -> str:
    """What an offer's listing is known by."""
    return f"o{number}#seller=Seller+{number % 5}"


def nothing(ids: list[int], asked: int) -> None:
    """Nobody buys."""


async def test_a_list_that_stands_still_is_read_once_page_by_page() -> None:
    """What the plan has read is what is kept, so that each page is asked for once."""
    market = Market(list(range(10)), nothing)
    keys, batches = await walk(market)
    assert keys == {key(number) for number in range(10)}
    assert market.asked == [URL, f"{URL}?page=2", f"{URL}?page=3"]
    assert [one.native_id for batch in batches for one in batch.targets] == [
        "page/1",
        "page/2",
        "page/3",
    ]
    assert batches[-1].then is not None
    assert batches[-1].then.state == {"complete": True}


@pytest.mark.parametrize("paging", ["page", "offset"])
async def test_an_offer_that_slips_to_a_page_before_is_met_in_the_next_pass(paging: str) -> None:
    """The first page's offers are sold after it was read, so that two others would be skipped."""

    def sold(ids: list[int], asked: int) -> None:
        if asked == 1:
            del ids[0:2]

    market = Market(list(range(12)), sold)
    keys, batches = await walk(market, paging=paging)
    assert keys == {key(number) for number in range(12)}
    again = [one.native_id for batch in batches for one in batch.targets if "~" in one.native_id]
    assert again == ["page/1~2"]


async def test_an_offer_that_is_met_on_two_pages_is_one_listing() -> None:
    """New ones push the others back; nothing is read twice under two names."""

    def listed(ids: list[int], asked: int) -> None:
        if asked == 1:
            ids[0:0] = [100, 101]

    keys, batches = await walk(Market(list(range(9)), listed))
    assert keys == {key(number) for number in (*range(9), 100, 101)}
    names = [one.native_id for batch in batches for one in batch.targets]
    assert len(names) == len(set(names))


async def test_whatever_happens_to_the_list_what_stays_in_it_is_met() -> None:
    """Seeded: offers come and go between any two pages of the first pass."""
    for seed in range(30):
        chance = random.Random(seed)
        stays = list(range(40))

        def shuffle(ids: list[int], asked: int, chance: random.Random = chance) -> None:
            if asked < 10:
                ids[:] = [one for one in ids if one < 40 or chance.random() < 0.5]
                for new in range(chance.randrange(5)):
                    ids.insert(chance.randrange(len(ids)), 1000 + asked * 10 + new)

        keys, _ = await walk(Market(list(stays), shuffle), passes=5, tolerance="0.5")
        assert {key(number) for number in stays} <= keys, seed


async def test_a_list_that_never_comes_to_rest_says_so_and_keeps_what_it_met() -> None:
    """Bounded passes; a run that misses too much does not pass for a whole one."""

    def churn(ids: list[int], asked: int) -> None:
        ids[:] = ids[3:] + [max(ids) + one for one in (1, 2, 3)]

    market = Market(list(range(40)), churn)
    kept_batches: list[Batch] = []
    with pytest.raises(Incomplete, match="of 400 items were met in 2 passes"):
        await walk(Lying(market, kept_batches), passes=2)
    assert len(market.asked) <= 2 * 12


class Lying:
    """A market that says it has ten times what it shows."""

    def __init__(self, market: Market, batches: list[Batch]) -> None:
        self._market = market
        self.batches = batches

    async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
        """The page, with another total."""
        found = await self._market.get(url, role=role)
        document = json.loads(found.body)
        document["total"] *= 10
        return part(url, json.dumps(document).encode())


async def test_cursors_and_links_are_followed_to_their_end() -> None:
    """An empty one ends the list, and so does one that leads back to where it was."""

    class Chain:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
            self.asked.append(url)
            number = int(parse_qs(urlsplit(url).query).get("after", ["0"])[0])
            onward = {"after": f"{number + 1}", "link": f"?after={(number + 1) % 3}"}
            body = {"offers": [offer(number)], "next": onward["after"] if number < 2 else None}
            return part(url, json.dumps({**body, "url": onward["link"]}).encode())

    chain = Chain()
    keys, _ = await walk(chain, paging="cursor", parameter="after", total=None)
    assert keys == {key(0), key(1), key(2)}
    keys, _ = await walk(Chain(), paging="link", next="/url", total=None)
    assert {key(0), key(1), key(2)} <= keys


async def test_a_plan_that_was_cut_off_goes_on_and_then_looks_at_the_list_as_a_whole() -> None:
    """Replay rule 4: nothing is passed over, although what was met before is not known any more."""
    ids = list(range(12))
    _, batches = await walk(Market(ids, nothing))
    assert batches[0].then is not None

    def sold(ids: list[int], asked: int) -> None:
        if asked == 0:
            del ids[0:3]

    before = {key(number) for number in range(4)}
    keys, _ = await walk(Market(list(ids), sold), batches[0].then)
    assert keys | before == {key(number) for number in range(12)}


async def test_a_plan_of_another_list_begins_at_its_beginning() -> None:
    """How far a run was says nothing of a list that the settings name since."""
    other = Checkpoint({"pass": 1, "number": 3, "next": f"{URL}?page=3", "of": f"{URL}?q=ssd"})
    market = Market(list(range(10)), nothing)
    await walk(market, other)
    assert market.asked[0] == URL


async def test_the_end_of_a_list_may_be_a_404() -> None:
    """As some interfaces say it; the first page's is none."""

    class Gone(NetFailed):
        status = 404

    class Ends:
        async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
            if "page=2" in url:
                raise Gone
            return part(url, json.dumps({"offers": [offer(1)]}).encode())

    keys, _ = await walk(Ends(), total=None)
    assert keys == {key(1)}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "no JSON"),
        (b'{"items": []}', "no list"),
        (b'{"offers": [{"x": 1}]}', "see `id`"),
    ],
)
async def test_what_is_no_list_of_offers_ends_the_plan_with_what_to_look_at(
    body: bytes, words: str
) -> None:
    """A changed interface is no empty marketplace."""

    class Other:
        async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
            return part(url, body)

    with pytest.raises(Incomplete, match=words):
        await walk(Other(), total=None)


@pytest.mark.parametrize(
    "point",
    ["collect.after_fetch=kill@2", "collect.after_keep=kill@2", "collect.before_checkpoint=kill@2"],
)
async def test_a_collector_killed_while_it_reads_a_marketplace_ends_as_if_it_had_not_been(
    tmp_path: Path, site: Site, point: str
) -> None:
    """Every offer once, with its seller, after the second run."""
    for number in range(1, 4):
        here = [offer(one) for one in range(number * 4 - 4, min(number * 4, 10))]
        path = "/offers" if number == 1 else f"/offers?page={number}"
        body = json.dumps({"total": 10, "offers": here}).encode()
        site.serve(path, answer(body, content_type="application/json"))
    source = f"""
[[source]]
id = "src_bazaarline"
adapter = "marketplace-offers"
currency = "EUR"
allow_private = ["127.0.0.1:{site.port}"]
[source.settings]
url = "{site.url("/offers")}"
total = "/total"
"""
    assert (await collect(tmp_path, source, point)).status == -9
    ran = await collect(tmp_path, source)
    assert ran.status == 0, ran.told
    captures = kept(tmp_path)
    records = read(captures)
    assert {record.listing_key for record in records} == {key(number) for number in range(10)}
    names = [capture.native_record_id for capture in captures]
    assert len(names) == len(set(names))
    assert all(record.merchant is not None for record in records)
