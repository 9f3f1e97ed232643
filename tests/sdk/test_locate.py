"""Resolving locators in kept bytes."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw_sdk.evidence import (
    AdapterVersion,
    Capture,
    Claim,
    Locator,
    Part,
    Selector,
    SelectorType,
)
from prw_sdk.locate import MOST_BYTES, fold, leads_back, resolve

AT = datetime(2026, 1, 2, tzinfo=UTC)
CSS, XPATH = SelectorType.CSS, SelectorType.XPATH
POINTER, QUOTE, CELL = SelectorType.JSON_POINTER, SelectorType.TEXT_QUOTE, SelectorType.CSV_CELL

PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8">
<meta property="og:title" content="A &amp; B"><script type="application/ld+json">
// a comment, with "quotes" and {braces}
{"name": "Drive \\u00e9 \\"1\\"", "a/b": {"m~n": [1.50, 2e3, true, null, {"x": "deep"}]},
 "twice": "first", "twice": "last", /* more */ "raw": "two
lines", "odd": "it\\'s", "list": [1,2,],};
</script></head><body><p id="x" class="price">Price:
 <b>1.299,00&nbsp;€</b><!-- no --></p><ul><li>one</li><li>two</li></ul><a href="/p?a=1&amp;b=2">L</a></body></html>"""


def part(body: bytes | str, media_type: str = "text/html", charset: str = "utf-8") -> Part:
    """A part of that body."""
    raw = body if isinstance(body, bytes) else body.encode(charset)
    digest = hashlib.sha256(raw).hexdigest()
    url = "https://shop.example/p"
    return Part("page", digest, raw, media_type, url, url, 200, AT, charset, charset)


def found(
    selector: Selector,
    body: bytes | str = PAGE,
    media_type: str = "text/html",
    charset: str = "utf-8",
) -> str | None:
    """What a selector finds, as it is compared."""
    text = resolve(part(body, media_type, charset), selector)
    return None if text is None else fold(text)


def in_script(pointer: str) -> Selector:
    """A JSON Pointer in the page's script."""
    return Selector(CSS, "script", refined_by=Selector(POINTER, pointer))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector(CSS, "#x b"), "1.299,00 €"),
        (Selector(CSS, "p.price"), "Price: 1.299,00 €"),
        (Selector(CSS, "li:nth-child(2)"), "two"),
        (Selector(CSS, 'meta[property="og:title"]', attribute="content"), "A & B"),
        (Selector(CSS, "a::attr(href)"), "/p?a=1&b=2"),
        (Selector(XPATH, "//li"), "one"),
        (Selector(XPATH, "(//li)[2]/text()"), "two"),
        (Selector(XPATH, "//a/@href"), "/p?a=1&b=2"),
        (Selector(XPATH, '//*[@id="x"]/b[1]'), "1.299,00 €"),
        (Selector(XPATH, "string(//ul)"), "onetwo"),
        (Selector(QUOTE, "Price: 1.299,00 €"), "Price: 1.299,00 €"),
        (Selector(CSS, "ul", refined_by=Selector(QUOTE, "two")), "two"),
    ],
)
def test_a_selector_finds_its_value_in_markup(selector: Selector, expected: str) -> None:
    """Entities are decoded, white space is folded, an attribute is named apart or in the path."""
    assert found(selector) == expected


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/name", 'Drive é "1"'),
        ("/a~1b/m~0n/0", "1.50"),
        ("/a~1b/m~0n/1", "2e3"),
        ("/a~1b/m~0n/2", "true"),
        ("/a~1b/m~0n/4/x", "deep"),
        ("/twice", "last"),
        ("/raw", "two lines"),
        ("/odd", "it's"),
        ("/list/1", "2"),
    ],
)
def test_a_json_pointer_finds_the_literal_value_in_a_script(pointer: str, expected: str) -> None:
    """Numbers keep their text; comments, control characters and trailing commas do no harm (RFC 6901)."""
    assert found(in_script(pointer)) == expected


@pytest.mark.parametrize(
    "selector",
    [
        in_script("/missing"),
        in_script("/a~1b"),
        in_script("/a~1b/m~0n"),
        in_script("/a~1b/m~0n/3"),
        in_script("/a~1b/m~0n/9"),
        in_script("/name/0"),
        in_script("name"),
        in_script(""),
        Selector(CSS, ".nothing"),
        Selector(CSS, "a", attribute="title"),
        Selector(CSS, "a["),
        Selector(CSS, ""),
        Selector(XPATH, "//a["),
        Selector(XPATH, "//nothing:a"),
        Selector(XPATH, "count(//a)"),
        Selector(XPATH, ""),
        Selector(XPATH, "//a/@href", attribute="title"),
        Selector(XPATH, "//" + "a/" * 3000),
        Selector(QUOTE, "Price: 1.300,00 €"),
        Selector(QUOTE, " "),
        Selector(CELL, "9,1"),
    ],
)
def test_a_selector_that_finds_nothing_finds_none(selector: Selector) -> None:
    """Whatever is wrong with a selector, resolving it raises nothing."""
    assert found(selector) is None


def test_refinement_has_an_end() -> None:
    """A chain of selectors is followed a few steps."""
    chain = Selector(CSS, "p")
    for _ in range(10):
        chain = Selector(CSS, "html", refined_by=chain)
    assert found(chain) is None


def test_markup_within_a_string_is_markup() -> None:
    """A feed's description may be HTML in JSON."""
    body = '{"html": "<p>one</p><p>two</p>"}'
    within = Selector(POINTER, "/html", refined_by=Selector(CSS, "p:nth-of-type(2)"))
    assert found(within, body, "application/json") == "two"


CSV = 'id;title;price\r\n1;"A ""drive""; big";9,99\r\n2;B;\r\n'


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2,2", 'A "drive"; big'),
        ("2,price", "9,99"),
        ("1,1", "id"),
        ("3,price", ""),
        ("4,1", None),
        ("2,9", None),
        ("2,colour", None),
        ("0,1", None),
        ("x,1", None),
        ("2", None),
    ],
)
def test_a_cell_of_a_table_is_found_by_row_and_column(cell: str, expected: str | None) -> None:
    """Columns by number or by the header's name; the delimiter is the header's."""
    assert found(Selector(CELL, cell), CSV, "text/csv") == expected


def test_a_row_that_cannot_be_read_keeps_its_number() -> None:
    """Replay rule 13: one broken row of a table hides none of those behind it."""
    table = "id,price\n1,a stray\rreturn\n2,9.00\n"
    assert found(Selector(CELL, "2,2"), table, "text/csv") is None
    assert found(Selector(CELL, "3,2"), table, "text/csv") == "9.00"


def test_xml_is_searched_as_xml() -> None:
    """Case is kept, and entities of the document's own are not expanded."""
    body = '<?xml version="1.0" encoding="iso-8859-1"?><!DOCTYPE f [<!ENTITY e SYSTEM "file:///etc/passwd">]><F><Preis>ä</Preis><x>&e;</x></F>'
    assert found(Selector(XPATH, "//Preis"), body, "application/xml", "iso-8859-1") == "ä"
    assert found(Selector(XPATH, "//x"), body, "text/xml", "iso-8859-1") in ("", None)
    assert found(Selector(XPATH, "//preis"), body, "application/rss+xml", "iso-8859-1") is None


def test_bytes_are_read_in_the_charset_that_was_used() -> None:
    """Whatever the document says of itself."""
    body = '<meta charset="utf-8"><p>Kühlkörper – ja</p>'.encode("cp1252")
    assert found(Selector(CSS, "p"), body, charset="cp1252") == "Kühlkörper – ja"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00\xff\xfe",
        b"<",
        b"<div>" * 5000,
        b"<!--",
        b"<p",
        b"\xef\xbb\xbf<p>x",
        b"{" * 100_000,
    ],
)
def test_no_body_is_too_broken_to_be_searched(body: bytes) -> None:
    """Broken and hostile bytes give a value or None."""
    for media_type in ("text/html", "application/xml", "application/json"):
        for selector in (
            Selector(CSS, "p"),
            Selector(XPATH, "//p"),
            Selector(POINTER, "/a"),
            Selector(QUOTE, "x"),
        ):
            assert found(selector, body, media_type) in (None, "x", "")


def test_a_part_beyond_the_limit_is_not_searched() -> None:
    """Nothing is found in what is too large to be evidence."""
    assert found(Selector(QUOTE, "x"), b"x" * (MOST_BYTES + 1), "text/plain") is None
    assert found(Selector(QUOTE, "x"), b"x", "text/plain") == "x"


def test_a_claim_leads_back_only_to_exactly_its_value() -> None:
    """A value that is part of what is found, or stands in another part, is not the stated one."""
    held = Capture("src", "p", AT, AdapterVersion("a", "1.0.0"), (part(PAGE),))
    where = Locator("page", Selector(CSS, "#x b"))
    assert leads_back(Claim("offer:price", "1.299,00 €", where), held)
    assert leads_back(Claim("offer:price", " 1.299,00\n€", where), held)
    assert leads_back(Claim("offer:price", "1.299,00&nbsp;&euro;", where), held)
    assert not leads_back(Claim("offer:price", "1.299,00", where), held)
    assert not leads_back(Claim("offer:price", "", where), held)
    assert not leads_back(Claim("offer:price", "x", Locator("stock", where.selector)), held)


JSON = st.recursive(
    st.text()
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_every_scalar_of_any_json_is_found_at_its_pointer(value: object, ascii_only: bool) -> None:
    """The scanner agrees with a parser on every value of every document."""
    body = json.dumps(value, ensure_ascii=ascii_only, indent=1).encode("utf-8", "surrogatepass")
    taken = part(body, "application/json")
    for pointer, expected in _scalars(value, ""):
        text = resolve(taken, Selector(POINTER, pointer))
        if expected is None:
            assert text is None
        elif isinstance(expected, str):
            assert text is not None
            assert fold(text) == fold(expected)
        else:
            assert text == json.dumps(expected)


def _scalars(value: object, pointer: str) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        members = value.items()
        return [
            one
            for name, inner in members
            for one in _scalars(inner, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
        ]
    if isinstance(value, list):
        return [one for at, inner in enumerate(value) for one in _scalars(inner, f"{pointer}/{at}")]
    return [(pointer, value)]
