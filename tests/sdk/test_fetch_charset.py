"""The charset that was declared, and the one that the bytes are read in."""

from __future__ import annotations

import codecs

import pytest

from prw_sdk.fetch.charset import declared, used

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
