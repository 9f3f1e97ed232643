"""Reading sitemaps (sitemaps.org protocol 0.9): plain or gzipped, indexes and lists."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from lxml import etree

from prw_plugin_schemaorg.addresses import joined
from prw_plugin_schemaorg.dom import elements, text
from prw_sdk.evidence import Part

MOST_BYTES = 52_428_800
MOST_ADDRESSES = 50_000
"""The protocol's limits of one sitemap, uncompressed; what lies beyond is not read."""

_EVERY = '/*/*[local-name()="url" or local-name()="sitemap"]/*[local-name()="loc"]'
_ADDRESSES = f"({_EVERY})[position() <= {MOST_ADDRESSES + 1}]"
_ROBOTS_LINE = re.compile(r"^[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one sitemap lists: pages, or further sitemaps; `is_cut` where it lists more than it may."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    is_cut: bool = False


def parse(part: Part) -> Sitemap:
    """Read a sitemap; a broken one counts as far as it can be read, what is none at all is empty."""
    raw = unzipped(part.body)
    if not raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        pages = _listed_plainly(raw, part)
        return Sitemap(pages[:MOST_ADDRESSES], is_cut=len(pages) > MOST_ADDRESSES)
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError:
        return Sitemap()
    if root is None:
        return Sitemap()
    stated = [text(one).strip() for one in elements(root, _ADDRESSES)]
    found = tuple(joined(part.url_reached, one) for one in stated[:MOST_ADDRESSES] if one)
    is_cut = len(stated) > MOST_ADDRESSES
    if etree.QName(root).localname == "sitemapindex":
        return Sitemap(sitemaps=found, is_cut=is_cut)
    return Sitemap(pages=found, is_cut=is_cut)


def in_robots(robots: str) -> tuple[str, ...]:
    """The sitemaps that a robots.txt names (RFC 9309, 2.2.4)."""
    return tuple(_ROBOTS_LINE.findall(robots))


def unzipped(body: bytes) -> bytes:
    """The body, decompressed where it is gzip, up to `MOST_BYTES`."""
    if not body.startswith(b"\x1f\x8b"):
        return body[:MOST_BYTES]
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(body, MOST_BYTES)
    except zlib.error:
        return b""


def _listed_plainly(raw: bytes, part: Part) -> tuple[str, ...]:
    """A sitemap may be a text file with one address a line."""
    if not part.media_type.lower().startswith("text/plain"):
        return ()
    lines = raw.decode("utf-8", errors="replace").split()
    return tuple(line for line in lines if line.startswith(("http://", "https://")))
