"""What charset a source declared, and which one its bytes are read in (the WHATWG order: BOM, header, document)."""

from __future__ import annotations

import re
from email.message import Message

from w3lib.encoding import html_body_declared_encoding, read_bom, resolve_encoding

from prw_sdk.evidence import is_charset

_HEAD = 4096
_LONGEST_TYPE = 1024
_LABEL = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:+-]+)""", re.IGNORECASE)
_PLAIN_TYPE = re.compile(r"[\w/+.-]+(?:; ?charset=([\w-]{1,40}))?", re.ASCII | re.IGNORECASE)
_WITH_BOM = {"utf-8": "utf-8-sig", "utf-16-be": "utf-16", "utf-16-le": "utf-16"}
_WITH_BOM |= {"utf-32-be": "utf-32", "utf-32-le": "utf-32"}


def declared(content_type: str | None, body: bytes, media_type: str) -> str | None:
    """The label that the source declared, as it wrote it: in the header first, then in the document itself."""
    plain = _PLAIN_TYPE.fullmatch(content_type or "")
    if plain is not None and plain[1]:
        return plain[1]
    header = Message()
    header["content-type"] = (content_type or "")[:_LONGEST_TYPE]
    label = header.get_param("charset")
    if isinstance(label, str) and label.strip():
        return label.strip()[:64]
    return _in_document(body[:_HEAD]) if _is_markup(media_type) else None


def _in_document(head: bytes) -> str | None:
    codec = html_body_declared_encoding(head)
    labels = (found.decode("ascii", "replace") for found in _LABEL.findall(head))
    return next((label for label in labels if codec and resolve_encoding(label) == codec), codec)


def used(label: str | None, body: bytes, media_type: str) -> str | None:
    """The Python codec that reads the body; None for bytes that are no text.

    Labels mean what browsers take them to mean, so ``iso-8859-1`` is read as ``cp1252``.
    """
    marked, _ = read_bom(body)
    if marked is not None:
        return _WITH_BOM.get(marked, marked)
    codec = None if label is None else resolve_encoding(label)
    if codec is not None and is_charset(codec) and not _belies(codec, body):
        return codec
    return _guess(body) if _is_text(media_type) else None


def _belies(codec: str, body: bytes) -> bool:
    """Whether a document whose declaration can be read as ASCII is said to be in wide characters."""
    return codec.startswith(("utf-16", "utf-32")) and _in_document(body[:_HEAD]) is not None


def _guess(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _is_markup(media_type: str) -> bool:
    return media_type.endswith(("html", "xml")) or media_type == "text/plain"


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("json", "xml", "javascript"))
