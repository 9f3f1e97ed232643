"""Every name that a page labels, in the form in which the inventory declares it."""

from __future__ import annotations

from collections.abc import Iterator

from prw_plugin_schemaorg.facts import label
from prw_plugin_schemaorg.nodes import Graph, Leaf, Node
from prw_plugin_schemaorg.page import Page
from prw_plugin_schemaorg.selection import OFFER_TYPES, PRODUCT_TYPES
from prw_plugin_schemaorg.settings import PROPERTY_PATHS

_SAME_AGAIN = {
    "hasVariant": "",
    "isVariantOf": "",
    "offers.itemOffered": "",
    "offers.offers": "offers",
}
"""Where a product or an offer stands within another: its names are the same ones."""


def stated(page: Page) -> list[str]:
    """All labelled names, each once and in order.

    A product's names are its paths (``offers.price``), whether it stands alone, in a group or as a page's main
    entity; anything else is named by its type (``BreadcrumbList.itemListElement``); OpenGraph by its own names.
    """
    names = {name for graph in (page.jsonld, page.microdata) for name in _of_graph(graph)}
    names.update(name for name, _ in page.opengraph.members)
    if page.canonical is not None:
        names.add("link.canonical")
    return sorted(names)


def _of_graph(graph: Graph) -> Iterator[str]:
    for root in graph.roots:
        if root.types & PRODUCT_TYPES:
            yield from _within(root, "", graph)
        elif root.types & OFFER_TYPES:
            yield from _within(root, "offers", graph)
        else:
            yield from _within(root, min(root.types, default="Thing"), graph)


def _within(node: Node, path: str, graph: Graph) -> Iterator[str]:
    for name, value in node.members:
        here = _path(path, name, value)
        if isinstance(value, Leaf) or not value.members:
            yield here
        elif name in PROPERTY_PATHS and not path:
            yield from _property(value, here, graph)
        else:
            yield from _within(value, here, graph)


def _path(path: str, name: str, value: Leaf | Node) -> str:
    here = f"{path}.{name}" if path else name
    if isinstance(value, Node) and value.types & PRODUCT_TYPES and name == "mainEntity":
        return ""
    return _SAME_AGAIN.get(here, here) if isinstance(value, Node) and value.members else here


def _property(stated: Node, path: str, graph: Graph) -> Iterator[str]:
    """A labelled property under its label; what it states beside name and value under that."""
    called = label(graph, stated)
    here = f"{path}.{called}" if called else path
    for name, _ in stated.members:
        if name == "value":
            yield here
        elif name not in ("name", "propertyID"):
            yield f"{here}.{name}"
