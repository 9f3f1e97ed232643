"""Leaves as stated, where they stand, and what an inventory makes of them."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw_sdk.adapter import Disposition, Excluded, Kind, NotARecord, Stated, Stored, matching
from prw_sdk.evidence import AdapterVersion, Capture, Part
from prw_sdk.locate import fold, leads_back, resolve
from prw_sdk.take import (
    Node,
    json_leaves,
    json_node,
    jsonld,
    labelled,
    page_leaves,
    parsed,
    stated,
    take,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
URL = "https://shop.example/p/1"
FIELDS: dict[str, Disposition] = {
    "sku": Stored("core:sku"),
    "offers.price": Stored("offer:price"),
    "offers.seller.name": Stored("offer:seller"),
    "review.*": Excluded("what buyers say"),
}


def part(text: str, media_type: str = "text/html", role: str = "page") -> Part:
    """A part with that text in UTF-8."""
    body = text.encode()
    digest = hashlib.sha256(body).hexdigest()
    return Part(role, digest, body, media_type, URL, URL, 200, AT, "utf-8", "utf-8")


def script(*bodies: str, kind: str = "application/ld+json") -> Part:
    """A page with JSON-LD scripts."""
    return part("".join(f'<script type="{kind}">{body}</script>' for body in bodies))


def lost(node: Node, page: Part) -> list[str]:
    """The leaves whose locators do not lead back."""
    return [
        leaf.name
        for leaf in node.leaves
        if leaf.text and fold(resolve(page, leaf.locator.selector) or "") != fold(leaf.text)
    ]


def test_a_value_is_exactly_what_stands_in_the_text() -> None:
    """A price of 12.90 is not 12.9, and a number is told from a text."""
    page = part('{"a": 12.90, "b": 1E3, "c": "12.90", "d": true, "e": null, "f": [], "g": " "}')
    found = {leaf.name: (leaf.kind, leaf.text) for leaf in json_node(page).leaves}
    assert found == {
        "a": (Kind.NUMBER, "12.90"),
        "b": (Kind.NUMBER, "1E3"),
        "c": (Kind.TEXT, "12.90"),
        "d": (Kind.BOOLEAN, "true"),
        "e": (Kind.NULL, ""),
        "f": (Kind.EMPTY, ""),
        "g": (Kind.EMPTY, ""),
    }


def test_names_are_dotted_and_items_share_the_name_of_their_list() -> None:
    """A list of objects gives ``offers.price`` for each."""
    page = part('{"offers": [{"price": 1.0}, {"price": 2.00}], "image": ["a", "b"]}')
    node = json_node(page)
    assert [(leaf.name, leaf.text, leaf.locator.selector.value) for leaf in node.leaves] == [
        ("offers.price", "1.0", "/offers/0/price"),
        ("offers.price", "2.00", "/offers/1/price"),
        ("image", "a", "/image/0"),
        ("image", "b", "/image/1"),
    ]
    assert [offer.text("price") for offer in node.nodes("offers")] == ["1.0", "2.00"]
    assert [leaf.name for leaf in node.beside("offers")] == ["image", "image"]


def test_leaves_of_a_value_start_at_its_pointer() -> None:
    """A row of an answer is located in the whole answer."""
    page = part('{"rows": [{"a/b": {"~": 3.10}}]}', "application/json", "stock")
    value = parsed('{"a/b": {"~": 3.10}}')
    (leaf,) = json_leaves(value, "stock", "/rows/0", "row")
    assert (leaf.name, leaf.text, leaf.locator.part_role) == ("row.a/b.~", "3.10", "stock")
    assert resolve(page, leaf.locator.selector) == "3.10"
    assert json_node(page, "/rows/0").text("a/b.~") == "3.10"


@pytest.mark.parametrize("text", ["", "<html>", "[1]", "3", '"a"', "[" * 50_000])
def test_what_holds_no_object_is_no_record(text: str) -> None:
    """A part that is no JSON object is told as such, whatever it is."""
    with pytest.raises(NotARecord, match="the part 'page'"):
        json_node(part(text))


def test_a_pointer_to_nowhere_is_no_record() -> None:
    """The message says where nothing was."""
    with pytest.raises(NotARecord, match=r"holds no object at '/a/7'"):
        json_node(part('{"a": [{}]}'), "/a/7")


TOLERATED = [
    '{"@type": "Product", "sku": "A1", "offers": {"price": 12.90,},}',
    '/* c */ {"@type": "Product", // x\n "sku": "A1", "offers": {"price": 12.90}};',
    '<!-- {"@type": "Product", "sku": "A1", "offers": {"price": 12.90}} -->',
    '//<![CDATA[\n{"@type": "Product", "sku": "A1", "offers": {"price": 12.90}}\n//]]>',
    '{"@type": "Product", "description": "a\nb", "sku": "A1", "offers": {"price": 12.90}}',
    '{"@type": ["Thing", "schema:Product"], "description": "it\\\'s", "sku": "A1", "offers": [{"price": 12.90}]}',
    '[{"@type": "http://schema.org/Product", "sku": "A1", "offers": {"price": 12.90}}]',
    '{"@graph": [{"@type": "WebPage"}, {"@type": "Product", "sku": "A1", "offers": {"price": 12.90}}]}',
    '{"@type": "ItemPage", "mainEntity": {"@type": "Product", "sku": "A1", "offers": {"price": 12.90}}}',
    '{"@type": "Product", "schema:sku": {"@value": "A1"}, "offers": {"price": 12.90}}',
    '{"@graph": [{"@type": "Product", "sku": "A1", "offers": {"@id": "#o"}}, {"@id": "#o", "price": 12.90}]}',
]


@pytest.mark.parametrize("body", TOLERATED)
def test_a_product_is_found_however_its_script_is_written(body: str) -> None:
    """Comments, trailing commas, graphs, lists, references, types by suffix; every value leads back."""
    page = script("{broken", body)
    (product,) = jsonld(page, "Product")
    assert (product.text("sku"), product.text("offers.price")) == ("A1", "12.90")
    assert [offer.text("price") for offer in product.nodes("offers")] == ["12.90"]
    assert lost(product, page) == []


def test_scripts_with_a_wider_type_lead_back_too() -> None:
    """``Application/LD+JSON; charset=utf-8`` is JSON-LD as well."""
    page = script('{"@type": "Product", "sku": "A1"}', kind="Application/LD+JSON; charset=utf-8")
    (product,) = jsonld(page, "Product")
    assert lost(product, page) == []


def test_other_types_and_what_stands_within_are_left_alone() -> None:
    """A related product inside another is not the page's product."""
    body = '{"@type": "Product", "sku": "A", "isRelatedTo": {"@type": "Product", "sku": "B"}}'
    page = script(body, '{"@type": "BreadcrumbList", "name": "x"}')
    assert [node.text("sku") for node in jsonld(page, "Product")] == ["A"]
    assert len(jsonld(page)) == 2
    assert jsonld(page, "Organization") == ()
    assert jsonld(part("")) == ()


@pytest.mark.timeout(10)
def test_objects_that_refer_to_each_other_come_to_an_end() -> None:
    """Circles, and pairs of references that double at every step."""
    circle = '{"@graph": [{"@id": "#a", "@type": "Product", "b": {"@id": "#b"}}, {"@id": "#b", "c": {"@id": "#a"}}]}'
    assert len(jsonld(script(circle), "Product")) == 1
    chain = [
        {"@id": f"#{n}", "@type": "Product", "next": [{"@id": f"#{n + 1}"}, {"@id": f"#{n + 1}"}]}
        for n in range(60)
    ]
    assert len(jsonld(script(json.dumps({"@graph": chain})), "Product")) == 60


def test_every_name_is_taken_excluded_or_unknown() -> None:
    """Replay rule 14: what no declaration covers is left over and named; a value that says nothing makes no claim."""
    text = (
        '{"sku": "A1", "offers": {"price": 12.90, "seller": {"name": "Lumen"}},'
        ' "review": {"text": "good"}, "colour": "red", "gone": null}'
    )
    page = part(text)
    node = json_node(page)
    taken = take(node.leaves, lambda name: matching(FIELDS, name))
    assert [(claim.attribute, claim.value_as_stated) for claim in taken.claims] == [
        ("core:sku", "A1"),
        ("offer:price", "12.90"),
        ("offer:seller", "Lumen"),
    ]
    assert taken.excluded == ("review.text",)
    assert taken.unknown == ("colour", "gone")
    record = taken.record("one", URL)
    assert record.merchant is not None
    assert record.merchant.value_as_stated == "Lumen"
    assert [claim.attribute for claim in record.claims] == ["core:sku", "offer:price"]
    capture = Capture("src_a", URL, AT, AdapterVersion("a", "1.0.0"), (page,))
    assert all(leads_back(claim, capture) for claim in taken.claims)


def test_a_stored_value_that_is_empty_makes_no_claim() -> None:
    """A null price is no price."""
    taken = take(json_node(part('{"sku": null}')).leaves, lambda name: matching(FIELDS, name))
    assert (taken.claims, taken.excluded, taken.unknown) == ((), (), ())


def test_what_is_stated_names_each_kind_once() -> None:
    """A list of numbers and texts is stated as both."""
    leaves = json_node(part('{"a": [1, 2, "x"], "b": {}}')).leaves
    assert stated(leaves) == (
        Stated("a", Kind.NUMBER),
        Stated("a", Kind.TEXT),
        Stated("b", Kind.EMPTY),
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_every_leaf_of_any_document_leads_back(value: dict[str, object]) -> None:
    """Whatever the names: slashes, tildes, dots, quotes, blanks, none at all."""
    page = part(json.dumps(value), "application/json")
    assert lost(json_node(page), page) == []


SHOWN = """<html><body><h1> Frame  <b>F&amp;1</b></h1>
<img class=photo src="/a.png"><img class=photo><img class=photo src="/b.png">
<table><tr><th>Part number:</th><td>F-1</td></tr><tr><th>Weight</th><!-- kg --><td> 1.20
kg</td></tr><tr><th> </th><td>x</td></tr><tr><th>Alone</th></tr><tr><th>Colour</th><td></td></tr></table>
<dl><dt>Size</dt><dd>XL</dd></dl></body></html>"""


def test_what_a_page_shows_is_taken_by_place_and_by_label() -> None:
    """Texts folded, attributes as they are, each at a place that leads back."""
    page = part(SHOWN)
    title = page_leaves(page, "title", "h1")
    photos = page_leaves(page, "photo", "img.photo", "src")
    facts = labelled(page, "th, dt", "facts")
    assert [leaf.text for leaf in title] == ["Frame F&1"]
    assert [leaf.text for leaf in photos] == ["/a.png", "/b.png"]
    assert [(leaf.name, leaf.kind, leaf.text) for leaf in facts] == [
        ("facts.Part number", Kind.TEXT, "F-1"),
        ("facts.Weight", Kind.TEXT, "1.20 kg"),
        ("facts.Colour", Kind.EMPTY, ""),
        ("facts.Size", Kind.TEXT, "XL"),
    ]
    for leaf in (*title, *photos, *facts):
        assert not leaf.text or fold(resolve(page, leaf.locator.selector) or "") == fold(leaf.text)


def test_a_selector_that_is_none_is_told() -> None:
    """And a page that is none shows nothing."""
    with pytest.raises(ValueError, match="is no CSS selector"):
        page_leaves(part(SHOWN), "x", "h1[")
    assert labelled(part(""), "th") == page_leaves(part(""), "x", "h1") == ()
