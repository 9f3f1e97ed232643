"""Pages that mean harm, or were written by hand."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import pytest

from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.adapter import NotARecord
from prw_sdk.evidence import Record
from prw_sdk.locate import leads_back
from tests.plugins.reading import capture, claims, plain

ADAPTER = SchemaOrg()
SCRIPT = '<script type="application/ld+json">%s</script>'
FOLDER = Path(__file__).parents[2] / "plugins" / "schemaorg" / "fixtures"
DAMAGE = (
    *(b"", b"<", b">", b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"\x00", b"//", b"/*", b"*/"),
    *(b"&quot;", b"</script>", b"<!--", b"-->", b"\\ud800", b"null", b'"@id":"#a",', b"itemscope "),
    *(
        b"<svg>",
        b"<table>",
        b"<o:p>",
        b"<textarea>",
        b'"@graph":[',
        b"&nbsp;",
        b'id="" ',
        b'content="x" ',
    ),
)
GOOD = '{"@type":"Product","name":"Good","sku":"1"}'


def read(markup: str) -> tuple[Record, ...]:
    """Read a page, whose locators all have to lead back."""
    taken = capture(
        markup.encode(), "https://shop.example/p/1", content_type="text/html; charset=utf-8"
    )
    records = tuple(ADAPTER.read(taken))
    assert all(leads_back(claim, taken) for record in records for claim in claims(record))
    assert list(ADAPTER.stated(taken)) == list(ADAPTER.stated(taken))
    return records


@pytest.mark.parametrize(
    "bad",
    [
        "[" * 100_000,
        '{"@graph":' * 50_000,
        "",
        "null",
        "42",
        '"Product"',
        '{"@type":["Product",null,7],"name":{"a":{"b":[[[]]]}}}',
        '{"@id":"#a","@type":"Product","offers":{"@id":"#a"}}',
    ],
)
def test_a_hostile_script_leaves_the_good_one_readable(bad: str) -> None:
    """Depth, circles and values of the wrong kind stop nothing."""
    names = [
        plain(record)["claims"].get("core:title") for record in read(SCRIPT % bad + SCRIPT % GOOD)
    ]
    assert "Good" in names


def test_a_deep_page_is_read() -> None:
    """Markup nested beyond all sense is cut, not crashed on."""
    deep = "<div>" * 1500 + f"<p>{SCRIPT % GOOD}</p>"
    assert len(read(deep)) == 1


def test_items_that_refer_to_each_other_in_circles_end() -> None:
    """`itemref` may point at the item itself, and at items around it."""
    markup = (
        '<div id="a" itemscope itemtype="https://schema.org/Product" itemref="a b"><b itemprop="name">A</b>'
        '<div id="b" itemprop="offers isRelatedTo" itemscope itemtype="https://schema.org/Offer" itemref="a b">'
        '<i itemprop="price">1</i></div></div>'
    )
    assert plain(read(markup)[0])["claims"]["core:title"] == "A"


def test_a_large_page_is_read_in_linear_time() -> None:
    """Twenty thousand properties of one product are no more than that."""
    item = '<span itemprop="additionalProperty" itemscope><i itemprop="name">n</i><b itemprop="value">v</b></span>'
    markup = f'<div itemscope itemtype="https://schema.org/Product"><h1 itemprop="name">Big</h1>{item * 6000}</div>'
    assert plain(read(markup)[0])["claims"]["core:title"] == "Big"


@pytest.mark.parametrize(
    ("stated", "kept"),
    [
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("</p> &amp; <b>", "</p> &amp; <b>"),
    ],
)
def test_text_that_no_database_keeps_becomes_text(stated: str, kept: str) -> None:
    """NUL and lone surrogates are replaced, everything else stays as stated."""
    node = json.dumps({"@type": "Product", "name": stated, "sku": "1"})
    assert plain(read(SCRIPT % node)[0])["claims"]["core:title"] == kept


def test_numbers_keep_their_literal_text() -> None:
    """`1.50` is not 1.5, and a long fraction loses nothing."""
    long = "4.83040000000000002700062395888380706310272216796875"
    node = f'{{"@type":"Product","name":"N","mpn":0012,"sku":{long},"offers":{{"price":1.50}}}}'
    with pytest.raises(NotARecord):
        read(SCRIPT % node)
    whole = plain(read(SCRIPT % node.replace("0012", "12E+3"))[0])["claims"]
    assert whole["offer:price"] == "1.50"
    assert whole["core:mpn"] == "12E+3"
    assert whole["core:sku"] == long


def test_a_price_that_is_no_value_is_no_claim() -> None:
    """Shops write `{}`, `null` and blanks where they have no price."""
    for price in ("{}", "null", '" "', "[]"):
        node = f'{{"@type":"Product","name":"N","offers":{{"price":{price},"availability":"No"}}}}'
        assert "offer:price" not in plain(read(SCRIPT % node)[0])["claims"]


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_page_is_read_with_locators_that_lead_back_or_not_at_all(seed: int) -> None:
    """Whatever damage does to a page, no claim is made that is not found again."""
    chance = random.Random(seed)
    pages = [path.read_bytes() for path in sorted(FOLDER.glob("*/page.html"))]
    for _ in range(10):
        page = bytearray(chance.choice(pages))
        for _ in range(chance.randint(1, 6)):
            at = chance.randint(0, len(page))
            page[at : at + chance.choice((0, 0, 0, 9))] = chance.choice(DAMAGE)
        with contextlib.suppress(NotARecord):
            read(page.decode("utf-8", errors="replace"))


def test_a_canonical_link_to_another_site_is_not_believed() -> None:
    """A listing stays under its own address."""
    link = '<link rel="canonical" href="https://other.example/p/9">'
    assert read(link + SCRIPT % GOOD)[0].listing_key == "https://shop.example/p/1"
    link = '<link rel="canonical" href="http://[::1">'
    assert read(link + SCRIPT % GOOD)[0].listing_key == "https://shop.example/p/1"


def test_offers_beside_the_product_are_its_offers() -> None:
    """Microdata whose offer stands outside the product, and JSON-LD whose offer holds the product."""
    apart = (
        '<div itemscope itemtype="https://schema.org/Product"><b itemprop="name">A</b></div>'
        '<div itemscope itemtype="https://schema.org/Offer"><b itemprop="price">7</b></div>'
    )
    assert plain(read(apart)[0])["claims"]["offer:price"] == "7"
    around = '{"@type":"Offer","price":"8","itemOffered":{"@type":"Product","name":"B"}}'
    assert plain(read(SCRIPT % around)[0])["claims"]["offer:price"] == "8"


def test_repeated_offers_of_one_seller_are_one_record() -> None:
    """Offers that nothing tells apart have no two keys."""
    offer = '{"@type":"Offer","price":"%s","priceCurrency":"USD","seller":{"name":"S"}}'
    node = f'{{"@type":"Product","name":"N","offers":[{offer % 1},{offer % 2}]}}'
    records = read(SCRIPT % node)
    assert [plain(record)["claims"]["offer:price"] for record in records] == ["1"]


def test_a_listings_key_stays_when_another_seller_comes() -> None:
    """The key of a seller's listing does not depend on who else sells."""
    first = '{"@type":"Offer","price":"1","seller":{"name":"First"}}'
    second = '{"@type":"Offer","price":"2","seller":{"name":"Second"}}'
    alone = read(SCRIPT % f'{{"@type":"Product","name":"N","offers":{first}}}')
    both = read(SCRIPT % f'{{"@type":"Product","name":"N","offers":[{second},{first}]}}')
    assert alone[0].listing_key in {record.listing_key for record in both}
