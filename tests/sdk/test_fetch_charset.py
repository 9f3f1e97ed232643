"""The charset that was declared, and the one that the bytes are read in."""

from __future__ import annotations

import codecs

import pytest

from prw_sdk.fetch.charset import declared, used
from prw_sdk.fetch.http import HttpNet
from tests.sdk.misbehaving import Site, answer

HTML = "text/html"


def test_the_header_is_asked_before_the_document() -> None:
    """The order of the WHATWG encoding rules."""
    body = b'<meta charset="utf-8">'
    assert declared("text/html; charset=ISO-8859-1", body, HTML) == "ISO-8859-1"
    assert declared("text/html", body, HTML) == "utf-8"
    assert declared(None, b'<?xml version="1.0" encoding="koi8-r"?>', "application/xml") == "koi8-r"
    assert declared("text/html", b"<p>", HTML) is None


@pytest.mark.parametrize("label", ["iso-8859-1", "latin1", "us-ascii", "windows-1252"])
def test_labels_mean_what_browsers_take_them_to_mean(label: str) -> None:
    """A page that says latin-1 has its euro signs at 0x80."""
    codec = used(label, b"\x80", HTML)
    assert codec is not None
    assert b"\x80".decode(codec) == "€"


def test_a_byte_order_mark_wins_over_every_label() -> None:
    """And it is no part of the text."""
    body = codecs.BOM_UTF8 + "ä".encode()
    assert body.decode(used("iso-8859-1", body, HTML) or "") == "ä"
    wide = codecs.BOM_UTF16_LE + "ä".encode("utf-16-le")
    assert wide.decode(used("utf-8", wide, HTML) or "") == "ä"


def test_text_without_a_label_is_utf_8_where_it_can_be() -> None:
    """Else what browsers fall back to."""
    assert used(None, "ä".encode(), HTML) == "utf-8"
    assert used(None, b"\xe4", HTML) == "cp1252"
    assert used("no-such-label", "ä".encode(), HTML) == "utf-8"


def test_bytes_that_are_no_text_have_no_charset() -> None:
    """An image is not read as text."""
    assert used(None, b"\x89PNG", "image/png") is None


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=windows-1252", b"\x80 \xe4", "€ ä"),
        ("text/html; charset=iso-8859-1", b"\x80 \xe4", "€ ä"),
        ("text/html; charset=iso-8859-15", b"\xa4 \xe4", "€ ä"),
        ("text/html; charset=utf-8", b'<meta charset="latin1">\xc3\xa4', None),
        ("text/html", b'<meta charset="windows-1252">\x80', None),
        (
            "text/html",
            b'<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-2">\xb1',
            None,
        ),
        ("text/html; charset=latin1", codecs.BOM_UTF8 + "ä".encode(), "ä"),
        ("text/html", codecs.BOM_UTF16_BE + "ä".encode("utf-16-be"), "ä"),
        ("text/html; charset=utf-8", b"\xe4 wrong label", "\ufffd wrong label"),
        ("text/html; charset=nonsense", "ä".encode(), "ä"),
        ("text/html; charset=", b"\xe4", "ä"),
        ('text/html; charset="UTF-8"', "ä".encode(), "ä"),
        ("text/html; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        ("text/html; charset=gb2312", "中文".encode("gb18030"), "中文"),
        ("application/xml", b'<?xml version="1.0" encoding="iso-8859-1"?>\xe4', None),
        ("application/json", '"ä"'.encode(), '"ä"'),
        ("text/csv", b"\xe4;1", "ä;1"),
    ],
)
async def test_a_page_reads_as_a_browser_would_show_it(
    site: Site, net: HttpNet, content_type: str, body: bytes, text: str | None
) -> None:
    """Mark, header, document, then a guess; a wrong label damages characters and nothing else."""
    url = site.serve("/a", answer(body, content_type=content_type))
    part = await net.get(url, role="page")
    assert part.body == body
    shown = {b"latin1": "ä", b"1252": "€", b"8859-2": "ą", b"xml": "ä"}
    expected = text or next(c for mark, c in shown.items() if mark in body)
    assert part.text() == expected if text else part.text().endswith(expected)


async def test_a_document_cannot_say_that_it_is_utf_16(site: Site, net: HttpNet) -> None:
    """It was read as ASCII so far (WHATWG, "prescan"): UTF-16 there means UTF-8."""
    body = '<meta charset="utf-16"><p>ä'.encode()
    part = await net.get(site.serve("/a", answer(body, content_type="text/html")), role="page")
    assert part.text() == body.decode()


@pytest.mark.parametrize(
    ("content_type", "body", "label", "shown"),
    [
        ("text/html; charset=iso-8859&#8211;2", b"\xb1", "iso-8859&#8211;2", "ą"),
        ("text/html; charset=ISO\u20118859\u20112", b"\xb1", "ISO\u20118859\u20112", "ą"),
        ("text/html", b'<meta charset="windows&#45;1251">\xe6', "windows&#45;1251", "ж"),
        ("text/html", "<meta charset=windows–1251>".encode() + b"\xe6", "windows–1251", "ж"),
        ("text/html", b'<meta httpequiv="ContentType" content="text/html; charset=big5" />\xa4\xa4', "big5", "中"),
        ("text/html", b'<meta content="text/html;charset = koi8-r" http_equiv=x>\xd6', "koi8-r", "ж"),
        ("text/html charset=windows-1251", b"\xe6", "windows-1251", "ж"),
        ("text/html; charset=cp-1251", b"\xe6", "cp-1251", "ж"),
        ("text/html; charset='windows-1251'", b"\xe6", "windows-1251", "ж"),
        ("text/html; CharSet = KOI8-R ; x=y", b"\xd6", "KOI8-R", "ж"),
    ],
)  # fmt: skip
async def test_a_label_that_was_spoilt_on_its_way_is_read_as_it_was_meant(
    site: Site, net: HttpNet, content_type: str, body: bytes, label: str, shown: str
) -> None:
    """Typographic or escaped dashes, missing ones, a declaration with misspelt attributes; it is kept as written."""
    url = site.serve("/a", answer(b"", content_type=None, headers={}))
    raw = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " + content_type.encode("utf-8")
    site.serve("/a", raw + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    part = await net.get(url, role="page")
    assert part.charset_declared == label
    assert part.text().endswith(shown)


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/rss+xml", b'<?xml version="1.0" encoding="windows-1252"?><p>\x80</p>'),
        ("application/atom+xml", "\ufeff<p>€</p>".encode("utf-16-le")),
        ("text/xml", '<?xml version="1.0" encoding="utf-16"?><p>€</p>'.encode("utf-16-be")),
        ("application/octet-stream", "<?xml version='1.0'?><p>€</p>".encode()),
        ("application/json", '{"price": "9 €"}'.encode("utf-16-le")),
        ("application/json; charset=utf-16", '{"price": "9 €"}'.encode()),
        ("application/feed+json", '{"price": "9 €"}'.encode()),
        ("text/tab-separated-values", "id\tprice\n1\t9 €".encode("utf-16")),
        ("text/csv", "id;price\n1;9 €".encode("cp1252")),
    ],
)
async def test_feeds_and_interfaces_are_read_in_what_they_are_written_in(
    site: Site, net: HttpNet, media_type: str, body: bytes
) -> None:
    """By mark, by declaration, or by where the zeros of their first characters stand."""
    part = await net.get(site.serve("/a", answer(body, content_type=media_type)), role="feed")
    assert part.body == body
    assert "€" in part.text()
    assert "\0" not in part.text()
