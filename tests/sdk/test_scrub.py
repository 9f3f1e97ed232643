"""What a fixture may not hold is found, taken out, and not found again; what is harmless stays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw_sdk.evidence import AdapterVersion, Capture, Part
from prw_sdk.testing.scrub import SCRUBBED, findings, replaced, scrubbed
from tests.sdk.test_take import AT, URL, part


def captured(page: Part) -> Capture:
    """A capture of one page."""
    return Capture("src_a", URL, AT, AdapterVersion("a", "1.0.0"), (page,))


TOKEN = "ab12cd34ef56ab12"
DANGEROUS = [
    (
        "an e-mail address",
        "Write to <b>jane.roe+x@mail.shop-of-mine.com</b>",
        "jane.roe+x@mail.shop-of-mine.com",
    ),
    ("an e-mail address", "mailto:jane@shop.de", "jane@shop.de"),
    ("a telephone number", '"telephone": "030 123 456-78"', "030 123 456-78"),
    ("a telephone number", '<a href="tel:+49301234567">', "+49301234567"),
    ("an international telephone number", "Call us: +49 30 1234567!", "+49 30 1234567"),
    ("a card number", "paid with 4111 1111 1111 1111", "4111 1111 1111 1111"),
    (
        "a JSON web token",
        "x eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM y",
        "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM",
    ),
    ("a bearer token", f"Authorization: Bearer {TOKEN}", TOKEN),
    ("a token", f'{{"csrfToken": "{TOKEN}"}}', TOKEN),
    ("a token", f"window.api_key='{TOKEN}'", TOKEN),
    ("a token", f'"session_id":"{TOKEN}"', TOKEN),
    (
        "a token in a form",
        f'<input type="hidden" name="authenticity_token" value="{TOKEN}">',
        TOKEN,
    ),
    ("a token in a form", f'<meta name="csrf-token" content="{TOKEN}" />', TOKEN),
    ("a token in an address", f'<a href="/p?id=1&amp;access_token={TOKEN}">', TOKEN),
]
HARMLESS = [
    "write to somebody@example.org",
    "shop@shop.example",
    "logo@2x.png and sprite@3x.webp",
    "react@18.2.0 of the CDN",
    "gtin 4006381333931, order 4111-2222-333",
    '"sku": "SIG-12345678"',
    '"tokenizer": "standard", "token": "scrubbed"',
    "a bearer of news",
    "+1 555 0100",
    "EAN 4111 1111 1111 1112",
    "from 12.90 to 1,299.00 EUR",
    '"password": "required"',
    "2026-01-02T03:04:05.678901+00:00",
]


@pytest.mark.parametrize(("what", "text", "secret"), DANGEROUS)
def test_what_a_fixture_may_not_hold_is_found_and_taken_out(
    what: str, text: str, secret: str
) -> None:
    """Under its own name, and gone once it is scrubbed."""
    capture = captured(part(text))
    assert (what, secret) in [(one.what, one.text) for one in findings(capture)]
    assert secret not in str(findings(capture)[0])
    clean = scrubbed(capture)
    assert secret not in clean.parts[0].text()
    assert findings(clean) == ()


@pytest.mark.parametrize("text", HARMLESS)
def test_what_points_to_nobody_stays(text: str) -> None:
    """Reserved domains, file names, numbers of articles, placeholders."""
    capture = captured(part(text))
    assert findings(capture) == ()
    assert scrubbed(capture) == capture


def test_headers_and_addresses_are_looked_at_too() -> None:
    """A cookie, and a key in the address that was asked for."""
    page = replace(
        part("x"),
        headers=(("etag", "1"), ("Set-Cookie", "sid=1")),
        url_asked=f"{URL}?api_key=k-1234567&page=2",
    )
    capture = captured(page)
    assert {one.what for one in findings(capture)} == {"a header", "a token in an address"}
    clean = scrubbed(capture).parts[0]
    assert clean.headers == (("etag", "1"),)
    assert clean.url_asked == f"{URL}?api_key={SCRUBBED}&page=2"
    assert findings(scrubbed(capture)) == ()


def test_a_token_is_taken_out_wherever_it_stands() -> None:
    """In a script that names it no more, in the address of another part."""
    page = part(f'{{"session_id": "{TOKEN}"}} <img src="/px/{TOKEN}.gif"> 12cd')
    other = replace(part("x", role="stock"), url_asked=f"{URL}/{TOKEN}/stock")
    clean = scrubbed(replace(captured(page), parts=(page, other)))
    assert TOKEN not in clean.parts[0].text()
    assert clean.parts[0].text().endswith(" 12cd")
    assert clean.parts[1].url_asked == f"{URL}/{SCRUBBED}/stock"


def test_what_is_allowed_stays() -> None:
    """A shop's own address in its imprint may be kept, by its text."""
    capture = captured(part("info@shop.de and jane@shop.de"))
    assert [one.text for one in findings(capture, ["info@shop.de"])] == ["jane@shop.de"]
    assert "info@shop.de" in scrubbed(capture, ["info@shop.de"]).parts[0].text()


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    """In another charset, with bytes that are none of it, in a picture."""
    body = "Grüße an jane@shop.de ".encode("cp1252") + b"\x81\x8d"
    page = replace(part(""), body=body, charset_used="cp1252")
    clean = scrubbed(captured(page)).parts[0]
    assert clean.body == body.replace(b"jane@shop.de", b"scrubbed@example.org")
    picture = replace(page, media_type="image/png")
    assert scrubbed(captured(picture)).parts[0].body == body


@given(st.text(max_size=200))
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    """Placeholders are found by no rule."""
    once = replaced(text)
    assert replaced(once) == once


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text", ["a@" * 50_000, "+1 2" * 50_000, "token" * 50_000, "a." * 50_000 + "@"]
)
def test_long_texts_are_looked_through_in_time(text: str) -> None:
    """No rule looks through the same text again and again."""
    findings(captured(part(text)))
