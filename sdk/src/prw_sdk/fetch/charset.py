"""What charset a source declared, and which one its bytes are read in (the WHATWG order: BOM, header, document)."""

from __future__ import annotations

import html
import re

from w3lib.encoding import html_body_declared_encoding, read_bom, resolve_encoding

from prw_sdk.evidence import is_charset

_HEAD = 4096
_LONGEST_TYPE = 1024
_LONGEST_LABEL = 64
_IN_HEADER = re.compile(
    r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|((?:&\#?\w+;|[^\s;,"'])+))""", re.IGNORECASE
)
_LABEL = re.compile(
    rb"""(?:charset|encoding)\s*=\s*["']?\s*((?:&\#?\w+;|[^\s"'<>;/])+)""", re.IGNORECASE
)
_IN_META = re.compile(rb"""<(?:meta|\?xml)\b[^>]*""", re.IGNORECASE)
_DASHES = re.compile(r"[\u2010-\u2015\u2212\u00ad_\s]+")
_WITH_BOM = {"utf-8": "utf-8-sig", "utf-16-be": "utf-16", "utf-16-le": "utf-16"}
_WITH_BOM |= {"utf-32-be": "utf-32", "utf-32-le": "utf-32"}


def declared(content_type: str | None, body: bytes, media_type: str) -> str | None:
    """The label that the source declared, as it wrote it: in the header first, then in the document itself."""
    found = _IN_HEADER.search((content_type or "")[:_LONGEST_TYPE])
    label = "" if found is None else next((text for text in found.groups() if text), "").strip()
    if label:
        return label[:_LONGEST_LABEL]
    return _in_document(body[:_HEAD]) if _is_markup(media_type, body) else None


def _in_document(head: bytes) -> str | None:
    codec = html_body_declared_encoding(head)
    labels = [found.decode("utf-8", "replace") for found in _labels(head)]
    return next((label for label in labels if codec is None or _codec(label) == codec), codec)


def _labels(head: bytes) -> list[bytes]:
    """The labels of declarations that can be resolved, also where a template engine spoilt one."""
    tags = (found[0] for found in _IN_META.finditer(head))
    labels = (label for tag in tags for label in _LABEL.findall(tag))
    return [label for label in labels if _codec(label.decode("utf-8", "replace")) is not None]


def _codec(label: str) -> str | None:
    """The codec of a label; one that was typed with typographic dashes or escaped is read as it was meant."""
    found = resolve_encoding(label)
    if found is not None:
        return found
    meant = _DASHES.sub("-", html.unescape(label).strip("\"' "))
    return resolve_encoding(meant) or resolve_encoding(meant.replace("-", ""))


def used(label: str | None, body: bytes, media_type: str) -> str | None:
    """The Python codec that reads the body; None for bytes that are no text.

    Labels mean what browsers take them to mean, so ``iso-8859-1`` is read as ``cp1252``.
    """
    marked, _ = read_bom(body)
    if marked is not None:
        return _WITH_BOM.get(marked, marked)
    codec = None if label is None else _codec(label)
    if codec is not None and is_charset(codec) and not _belies(codec, body):
        return codec
    return _guess(body) if _is_text(media_type, body) else None


def _belies(codec: str, body: bytes) -> bool:
    """Whether a document is said to be in wide characters, and is written in narrow ones."""
    return codec.startswith(("utf-16", "utf-32")) and _wide(body) is None and b"\0" not in body


def _guess(body: bytes) -> str:
    wide = _wide(body)
    if wide is not None:
        return wide
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _wide(body: bytes) -> str | None:
    """UTF-16 or UTF-32 by where the zeros of its first characters stand (RFC 4627, section 3; XML, appendix F)."""
    first = tuple(byte == 0 for byte in body[:4])
    known: dict[tuple[bool, ...], str] = {
        (True, True, True, False): "utf-32-be",
        (False, True, True, True): "utf-32-le",
        (True, False, True, False): "utf-16-be",
        (False, True, False, True): "utf-16-le",
    }
    return known.get(first)


def _is_markup(media_type: str, body: bytes) -> bool:
    return (
        media_type.endswith(("html", "xml"))
        or media_type == "text/plain"
        or body[:64].lstrip().startswith(b"<?xml")
    )


def _is_text(media_type: str, body: bytes) -> bool:
    return media_type.startswith("text/") or (
        media_type.endswith(("json", "xml", "javascript", "csv"))
        or body[:64].lstrip().startswith(b"<?xml")
    )
