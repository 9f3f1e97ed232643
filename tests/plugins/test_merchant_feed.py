"""Feeds as they are in the wild: charsets that lie, entities encoded twice, ragged rows, packed and huge ones."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from prw_plugin_merchant_feed import MerchantFeed
from prw_plugin_merchant_feed.encoding import parts
from prw_plugin_merchant_feed.settings import MerchantFeedSettings
from prw_sdk.adapter import Checkpoint, Excluded, NotARecord, Source, Stored
from prw_sdk.evidence import AdapterVersion, Capture, Part, Record
from prw_sdk.fetch import charset
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.locate import leads_back
from prw_sdk.testing.reading import claims
from tests.plugins.nets import Pages
from tests.plugins.reading import plain

FEED = "https://shop.example/feed"
AT = datetime(2026, 1, 2, 12, tzinfo=UTC)
ADAPTER = MerchantFeed()
XML = "application/xml"
TSV = "text/tab-separated-values"
RSS = (
    '<rss xmlns:g="http://base.google.com/ns/1.0"><channel><title>A shop</title>%s</channel></rss>'
)


def served(body: bytes, media_type: str) -> Part:
    """What the collector's network makes of an answer."""
    label = charset.declared(media_type, body, media_type.partition(";")[0])
    used = charset.used(label, body, media_type.partition(";")[0])
    digest = hashlib.sha256(body).hexdigest()
    return Part("feed", digest, body, media_type, FEED, FEED, 200, AT, label, used)


def config(**settings: Any) -> Any:
    """The config of a source with these settings."""
    source = Source("src_test", MerchantFeedSettings(feeds=(FEED,), **settings), currency="EUR")
    return ADAPTER.config(source)


def capture(body: bytes, media_type: str = XML, **settings: Any) -> Capture:
    """The capture of a feed."""
    adapter, kept = AdapterVersion("merchant-feed", "0.1.0"), parts(served(body, media_type))
    return Capture("src_test", FEED, AT, adapter, kept, config(**settings))


def read(taken: Capture) -> list[Record]:
    """The records, whose locators all have to lead back."""
    found = list(ADAPTER.read(taken))
    lost = [c for record in found for c in claims(record) if not leads_back(c, taken)]
    assert lost == []
    return found


def only(taken: Capture) -> dict[str, Any]:
    """What the one record of a feed says."""
    (record,) = read(taken)
    return dict(plain(record)["claims"])


def item(inner: str, number: str = "1") -> str:
    """One item of an RSS feed."""
    return f"<item><g:id>{number}</g:id>{inner}</item>"


def rss(*items: str) -> bytes:
    """An RSS feed."""
    return (RSS % "".join(items)).encode()


@pytest.mark.parametrize(
    ("encoding", "media_type", "mark"),
    [
        ("utf-8", XML, b""),
        ("utf-8", XML, b"\xef\xbb\xbf"),
        ("cp1252", XML, b""),
        ("cp1252", "application/xml; charset=utf-8", b""),
        ("utf-16-le", XML, b"\xff\xfe"),
        ("utf-16-be", XML, b"\xfe\xff"),
        ("utf-16-le", XML, b""),
        ("utf-16-be", "text/plain", b""),
        ("utf-8", "text/html", b""),
        ("cp1252", "application/octet-stream", b""),
    ],
)
def test_markup_is_read_in_the_charset_that_it_is_in(
    encoding: str, media_type: str, mark: bytes
) -> None:
    """Whatever the header and the document say of it."""
    text = '<?xml version="1.0" encoding="utf-8"?>' + RSS % item("<title>Größe „Süd“</title>")
    assert only(capture(mark + text.encode(encoding), media_type))["core:title"] == "Größe „Süd“"


@pytest.mark.parametrize(
    ("encoding", "media_type"),
    [
        ("utf-8", TSV),
        ("utf-8-sig", "text/csv"),
        ("cp1252", "text/csv; charset=utf-8"),
        ("cp1252", "application/octet-stream"),
        ("utf-16", "application/vnd.ms-excel"),
        ("utf-16-le", "text/csv"),
    ],
)
def test_tables_are_read_in_the_charset_that_they_are_in(encoding: str, media_type: str) -> None:
    """A mark at their start belongs to no column's name."""
    table = "id\ttitle\r\n1\tGröße „Süd“\r\n".encode(encoding)
    assert only(capture(table, media_type))["core:title"] == "Größe „Süd“"


def test_one_broken_character_makes_no_feed_windows_1252() -> None:
    """A title that was cut off within a character leaves the others as they are."""
    broken = "Größe für Tür".encode() + "ü".encode()[:1]
    found = only(capture(rss(item("<title>X</title>")).replace(b"X", broken)))
    assert found["core:title"] == "Größe für Tür\ufffd"


def test_what_was_declared_stays_beside_what_was_used() -> None:
    """A charset that lies is evidence too."""
    (kept,) = parts(served("<rss>Größe</rss>".encode("cp1252"), "application/xml; charset=utf-8"))
    assert (kept.charset_declared, kept.charset_used) == ("utf-8", "cp1252")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("Tom &amp;amp; Jerry", "Tom & Jerry"),
        ("Tom &amp; Jerry", "Tom & Jerry"),
        ("<![CDATA[Tom &amp; Jerry]]>", "Tom & Jerry"),
        ("Tom &amp;amp;amp; Jerry", "Tom &amp;amp; Jerry"),
        ("3 &lt; 4", "3 < 4"),
        ("Caf&amp;eacute;", "Café"),
        ("R&amp;D", "R&D"),
        ("&amp;#x1F600; ok", "\U0001f600 ok"),
    ],
)
def test_what_was_encoded_twice_is_decoded(written: str, told: str) -> None:
    """One time, so that the place still holds what is claimed."""
    assert only(capture(rss(item(f"<title>{written}</title>"))))["core:title"] == told


def test_an_address_is_no_entity() -> None:
    """``&copy=2`` is a parameter, whatever browsers make of it."""
    link = "https://shop.example/p?a=1&copy=2&amp;amp;reg=3"
    table = f"id\tlink\n1\t{link}\n".encode()
    assert "&copy=2" in only(capture(table, TSV))["core:url"]


@pytest.mark.parametrize("price", ["15.00", "19,99 EUR", "EUR 19.99", "1.299,00 €"])
def test_a_price_is_claimed_as_stated(price: str) -> None:
    """Without a currency it is incomplete, and no claim completes it."""
    found = only(capture(rss(item(f"<g:price>{price}</g:price>"))))
    assert found["offer:price"] == price
    assert "offer:currency" not in found


@pytest.mark.parametrize(
    ("sale", "period", "asked"),
    [
        ("8.00 EUR", "", "8.00 EUR"),
        ("8.00 EUR", "2026-01-01T00:00+0100/2026-01-03T00:00+0100", "8.00 EUR"),
        ("8.00 EUR", "2025-12-01T00:00+0100/2025-12-24T00:00+0100", "9.00 EUR"),
        ("8.00 EUR", "2026-02-01T00:00Z/2026-02-03T00:00Z", "9.00 EUR"),
        ("8.00 EUR", "2026-01-01/2026-01-03", "8.00 EUR"),
        ("8.00 EUR", "soon", "9.00 EUR"),
        ("0.00 EUR", "", "9.00 EUR"),
        ("", "", "9.00 EUR"),
    ],
)
def test_the_sale_price_is_asked_while_the_sale_goes_on(sale: str, period: str, asked: str) -> None:
    """By the moment at which the feed was fetched; a record has one price."""
    inner = f"<g:price>9.00 EUR</g:price><g:sale_price>{sale}</g:sale_price>"
    inner += f"<g:sale_price_effective_date>{period}</g:sale_price_effective_date>"
    assert only(capture(rss(item(inner))))["offer:price"] == asked


def test_rows_with_quotes_line_breaks_and_gaps() -> None:
    """A quoted cell may hold anything, a short row says less, and a long one nothing at all."""
    table = 'id;title;price\n1;"two\nlines; and ""quotes""";1,00\n2;short\n3;a;2,00;shifted\n4;24" wide;3\n'
    found = [plain(record)["claims"] for record in read(capture(table.encode(), "text/csv"))]
    assert [one["core:sku"] for one in found] == ["1", "2", "4"]
    assert found[0]["core:title"] == 'two\nlines; and "quotes"'
    assert "offer:price" not in found[1]
    assert found[2]["core:title"] == '24" wide'


def test_a_long_row_shows_among_the_stated_names() -> None:
    """What is passed over is accounted for (replay rule 14)."""
    taken = capture(b"id\ttitle\n1\ta\tb\n2\tc\n", TSV)
    names = {one.name for one in ADAPTER.stated(taken)}
    assert "beyond the header" in names
    assert isinstance(ADAPTER.disposition("beyond the header", taken.config), Excluded)


def test_a_broken_row_stalls_no_feed() -> None:
    """Replay rule 13: the rows behind it are read, each at its own number."""
    table = b"id\ttitle\n1\ta stray\rreturn\n2\tgood\n3\t" + b"x" * 200_000 + b"\n4\talso good\n"
    found = [plain(one)["claims"]["core:sku"] for one in read(capture(table, TSV))]
    assert found == ["2", "4"]


def test_of_rows_with_one_id_the_first_counts_and_sellers_are_told_apart() -> None:
    """A listing key is of one seller's offer (replay rule 1)."""
    table = b"id\tprice\tmerchant_name\n7\t1\tA\n7\t2\tB\n7\t3\tA\n"
    found = read(capture(table, TSV))
    assert [one.listing_key for one in found] == ["7#seller=A", "7#seller=B"]
    assert [plain(one)["claims"]["offer:price"] for one in found] == ["1", "2"]


def test_identifiers_stay_texts() -> None:
    """No zero is lost at the front, and ``E00000012`` is no number."""
    table = b"id\tgtin\tmpn\n007\t0031146262571\tE00000012\n"
    found = only(capture(table, TSV))
    assert found["core:sku"] == "007"
    assert found["core:gtin"] == "0031146262571"
    assert found["core:mpn"] == "E00000012"


def test_the_publisher_is_the_merchant_only_where_nobody_else_is() -> None:
    """Replay rule 15: the row's own seller, else the channel, unless the feed is an aggregator's."""
    bare, named = rss(item("")), rss(item("<seller>B shop</seller>"))
    (of_channel,) = read(capture(bare))
    (of_row,) = read(capture(named))
    (nobody,) = read(capture(bare, publisher_is_seller=False))
    (mapped,) = read(capture(rss(item("<g:shop>C</g:shop>")), fields={"shop": "offer:seller"}))
    assert of_channel.merchant is not None
    assert of_channel.merchant.value_as_stated == "A shop"
    assert of_row.merchant is not None
    assert of_row.merchant.value_as_stated == "B shop"
    assert nobody.merchant is None
    assert mapped.merchant is not None
    assert mapped.merchant.value_as_stated == "C"


def test_columns_can_be_mapped() -> None:
    """Whatever language a table's header is in."""
    table = b"Artikelnr.;Preis (EUR);Titel\n1;9,90;Lampe\n"
    columns = {"artikelnr.": "id", "Preis (EUR)": "price", "Titel": "title"}
    found = only(capture(table, "text/csv", columns=columns))
    assert found == {"core:sku": "1", "offer:price": "9,90", "core:title": "Lampe"}
    assert ADAPTER.disposition("detail.x", config(fields={"detail.x": "core:mpn"})) == Stored(
        "core:mpn"
    )


def test_a_packed_feed_is_kept_as_sent_and_unpacked() -> None:
    """Places point into what can be read; members that follow each other are one file."""
    half = gzip.compress(b"id\ttitle\n"), gzip.compress(b"1\tGood\n")
    taken = capture(b"".join(half), "application/gzip")
    assert [part.role for part in taken.parts] == ["feed", "packed"]
    assert only(taken)["core:title"] == "Good"


def test_a_packed_feed_that_is_cut_off_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that is damaged, or would never end."""
    packed = gzip.compress(b"id\ttitle\n" + b"1\tGood\n" * 1000)
    with pytest.raises(FetchFailed) as told:
        parts(served(packed[:-9], "application/gzip"))
    assert told.value.outcome is Outcome.TRUNCATED
    with pytest.raises(FetchFailed) as told:
        parts(served(packed[:12] + b"\xff" * 40, "application/gzip"))
    assert told.value.outcome is Outcome.UNDECODABLE
    monkeypatch.setattr("prw_plugin_merchant_feed.encoding.MOST_BYTES", 1000)
    with pytest.raises(FetchFailed) as told:
        parts(served(packed, "application/gzip"))
    assert told.value.outcome is Outcome.TOO_LARGE


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<!DOCTYPE html><html><p>moved", "page"),
        (b"<html><item><id>1</id></item></html>", "page"),
        (b'{"items": []}', "JSON"),
        (b"  \n", "empty"),
        (b"<rss><channel><title>A</title></channel></rss>", "without items"),
        (b"<rss><channel><item><title>A</title></item></channel></rss>", "has an id"),
        (b"sku,title\n1,a\n", "`columns`"),
    ],
)
def test_what_is_no_feed_says_what_it_is(body: bytes, reason: str) -> None:
    """With the setting to look at where there is one."""
    with pytest.raises(NotARecord, match=reason):
        list(ADAPTER.read(capture(body, "text/plain")))


@pytest.mark.parametrize("kind", ["xml", "table"])
def test_a_huge_feed_is_read_an_item_at_a_time(kind: str) -> None:
    """What reading holds beside the feed's bytes does not grow with them (ids apart)."""

    def held(count: int) -> int:
        items = (item("<title>words </title>" * 3, str(n)) for n in range(count))
        rows = (f"{n}\t{'words ' * 10}\n" for n in range(count))
        body = rss(*items) if kind == "xml" else ("id\ttitle\n" + "".join(rows)).encode()
        taken = capture(body, XML if kind == "xml" else TSV)
        tracemalloc.start()
        found = sum(1 for _ in ADAPTER.read(taken))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found == count
        return peak

    a_key = 300  # bytes, the set's own growth included; a record of one takes thousands
    assert held(10_000) - held(1_000) < 9_000 * a_key


async def test_feeds_are_planned_one_after_another() -> None:
    """A feed is a batch; a run that was cut off goes on after the last one that is done (replay rule 4)."""
    feeds = tuple(f"{FEED}/{n}" for n in range(3))
    source = Source("src_test", MerchantFeedSettings(feeds=feeds))

    async def planned(checkpoint: Checkpoint | None) -> list[str]:
        batches = [batch async for batch in ADAPTER.plan(source, checkpoint, Pages({}))]
        assert batches[-1].then == Checkpoint({"complete": True})
        return [target.native_id for batch in batches for target in batch.targets]

    assert await planned(None) == list(feeds)
    assert await planned(Checkpoint({"after": feeds[1]})) == [feeds[2]]
    assert await planned(Checkpoint({"after": "gone"})) == list(feeds)
    assert await planned(Checkpoint({"complete": True})) == list(feeds)


def test_a_feed_that_is_read_later_says_the_same() -> None:
    """Reading asks for the moment of the fetch, never for the present."""
    taken = capture(rss(item("<title>A</title>")))
    later = replace(taken, captured_at=datetime(2030, 1, 1, tzinfo=UTC))
    assert list(ADAPTER.read(taken)) == list(ADAPTER.read(later))


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "feeds"),
        ({"feeds": []}, "feeds"),
        ({"feeds": ["shop.example/feed.xml"]}, "feeds"),
        ({"feeds": [FEED, FEED]}, "feeds"),
        ({"feeds": [FEED], "columns": {"Preis": "offer:price"}}, "columns"),
        ({"feeds": [FEED], "fields": {"shop": "seller"}}, "fields"),
        ({"feeds": [FEED], "exclusions": {"shop": " "}}, "exclusions"),
        ({"feeds": [FEED], "item": "a b"}, "item"),
        ({"feeds": [FEED], "feed": FEED}, "feed"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], field: str) -> None:
    """With the field in the message."""
    with pytest.raises(ValidationError, match=field):
        MerchantFeedSettings(**settings)
