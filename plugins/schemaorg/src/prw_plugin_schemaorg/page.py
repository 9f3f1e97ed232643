"""One captured page, taken apart into its markups."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from prw_plugin_schemaorg import jsonld, microdata, opengraph
from prw_plugin_schemaorg.addresses import is_page, joined, known_as
from prw_plugin_schemaorg.dom import elements, parse
from prw_plugin_schemaorg.nodes import Graph, Leaf, Node, clean, graph
from prw_plugin_schemaorg.settings import Reading, reading
from prw_sdk.adapter import NotARecord
from prw_sdk.evidence import Capture, Part, Presence, Selector, SelectorType

ROLE = "page"

_CANONICAL = '//link[contains(concat(" ",normalize-space(@rel)," ")," canonical ")][@href]'
_PAGES = ("text/html", "application/xhtml+xml", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class Page:
    """`address` is what the page is known as; `base` what its relative addresses are relative to."""

    address: str
    base: str
    canonical: Leaf | None
    jsonld: Graph
    microdata: Graph
    opengraph: Node
    reading: Reading
    has_broken_scripts: bool = False

    def is_here(self, url: str) -> bool:
        """Whether an address that the page states leads to this page, under either of its names."""
        names = (self.address, *([] if self.canonical is None else [self.canonical.text]))
        return any(is_page(joined(self.base, url), joined(self.base, name)) for name in names)


def open_page(capture: Capture) -> Page:
    """Take a capture's page apart; raises `NotARecord` where there is no page in it."""
    part, tree = _document(capture)
    canonical = _canonical(tree)
    scripts = tuple(jsonld.roots(tree))
    stated = None if canonical is None else canonical.text
    return Page(
        address=known_as(capture.native_record_id, stated, part.url_reached),
        base=part.url_reached,
        canonical=canonical,
        jsonld=graph(scripts),
        microdata=graph(microdata.roots(tree)),
        opengraph=opengraph.read(tree),
        reading=reading(capture.config),
        has_broken_scripts=not scripts and bool(elements(tree, jsonld.SCRIPTS)),
    )


def _document(capture: Capture) -> tuple[Part, etree._Element]:
    if capture.presence is Presence.ABSENT:
        raise NotARecord("the source says that this page is gone")
    try:
        part = capture.part(ROLE)
    except KeyError:
        raise NotARecord(f"the capture has no part {ROLE!r}") from None
    if part.media_type.partition(";")[0].strip().lower() not in _PAGES:
        raise NotARecord(f"not a page but {part.media_type}")
    tree = parse(part.text())
    if tree is None:
        raise NotARecord("an empty page")
    return part, tree


def _canonical(tree: etree._Element) -> Leaf | None:
    link = next(iter(elements(tree, _CANONICAL)), None)
    if link is None or not link.get("href", "").strip():
        return None
    where = Selector(SelectorType.XPATH, f"({_CANONICAL})[1]", attribute="href")
    return Leaf(clean(link.get("href", "")), where)
