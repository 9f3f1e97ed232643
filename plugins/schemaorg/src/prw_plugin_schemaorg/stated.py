"""Every name that a page labels, in the form in which the inventory declares it."""

from __future__ import annotations

from collections.abc import Iterator

from prw_plugin_schemaorg.facts import label, property_value, states_bounds
from prw_plugin_schemaorg.nodes import Graph, Leaf, Node
from prw_plugin_schemaorg.page import Page
from prw_plugin_schemaorg.selection import OFFER_TYPES, PRODUCT_TYPES
from prw_plugin_schemaorg.settings import PROPERTY_PATHS, Reading
from prw_sdk.adapter import Kind, Stated

_SAME_AGAIN = {
    "hasVariant": "",
    "isVariantOf": "",
    "offers.itemOffered": "",
    "offers.offers": "offers",
}
"""Where a product or an offer stands within another: its names are the same ones."""


def stated(page: Page) -> list[Stated]:
    """All labelled names, each with each kind of its values once, in order.

    A product's names are its paths (``offers.price``), whether it stands alone, in a group or as a page's main
    entity; anything else is named by its type (``BreadcrumbList.itemListElement``); OpenGraph by its own names. A value
    that is no claim where it stands has a name of its own there: ``offers.range.lowPrice`` for one.
    """
    graphs = (page.jsonld, page.microdata)
    names = {one for graph in graphs for one in _of_graph(graph, page.reading)}
    names.update(Stated(name, Kind.TEXT) for name, _ in page.opengraph.members)
    names.update(Stated(name, kind) for name, kind in page.opengraph.silent)
    if page.canonical is not None:
        names.add(Stated("link.canonical", Kind.TEXT))
    return sorted(names, key=lambda one: (one.name, one.kind))


def _of_graph(graph: Graph, reading: Reading) -> Iterator[Stated]:
    """Products first: what they refer to is named as theirs, and only the rest by its own type."""
    walk = _Walk(graph, reading)
    for root in sorted(graph.roots, key=_is_beside):
        if id(root) not in walk.seen:
            yield from walk.within(root, _name(root))


def _is_beside(root: Node) -> bool:
    return not root.types & (PRODUCT_TYPES | OFFER_TYPES)


def _name(root: Node) -> str:
    if root.types & PRODUCT_TYPES:
        return ""
    return "offers" if root.types & OFFER_TYPES else min(root.types, default="Thing")


class _Walk:
    """Names everything that is under a node; each node once, since nodes may refer to each other in circles."""

    def __init__(self, graph: Graph, reading: Reading) -> None:
        self._graph = graph
        self._reading = reading
        self.seen: set[int] = set()

    def within(self, node: Node, path: str) -> Iterator[Stated]:
        """The names of a node's members and of theirs."""
        self.seen.add(id(node))
        is_range = path == "offers" and states_bounds(self._graph, node, self._reading)
        for name, value in node.members:
            here = _path(path, name, self._graph.real(value))
            if is_range and name == "lowPrice":
                here = "offers.range.lowPrice"
            yield from self._of_value(self._graph.real(value), here)
        for name, kind in node.silent:
            yield Stated(_joined(path, name), kind)

    def _of_value(self, value: Leaf | Node, here: str) -> Iterator[Stated]:
        if isinstance(value, Leaf):
            yield Stated(here, value.kind)
        elif not value.members and not value.silent:
            yield Stated(here, Kind.OBJECT)
        elif here in PROPERTY_PATHS:
            yield from self._property(value, here)
        elif id(value) not in self.seen:
            yield from self.within(value, here)

    def _property(self, stated: Node, path: str) -> Iterator[Stated]:
        """A labelled property under its label; what it states beside name and value under that.

        A value that says nothing by itself, a range or a number whose unit stands apart, is the label's ``quantity``.
        """
        called = label(self._graph, stated)
        here = f"{path}.{called}" if called else path
        is_read = property_value(self._graph, stated) is not None
        for name, value in stated.members:
            real = self._graph.real(value)
            if name == "value":
                yield from _value(real, here if is_read else f"{here}.quantity")
            elif name not in ("name", "propertyID"):
                yield Stated(f"{here}.{name}", _kind(real))
        for name, kind in stated.silent:
            if name not in ("name", "propertyID"):
                yield Stated(here if name == "value" else f"{here}.{name}", kind)


def _value(value: Leaf | Node, here: str) -> Iterator[Stated]:
    """The value of a property, which may be a node with a unit or bounds of its own (QuantitativeValue)."""
    if isinstance(value, Leaf) or not (value.members or value.silent):
        yield Stated(here, _kind(value))
        return
    members = [(name, _kind(inner)) for name, inner in value.members]
    for name, kind in (*members, *value.silent):
        yield Stated(here if name == "value" else f"{here}.{name}", kind)


def _kind(value: Leaf | Node) -> Kind:
    return value.kind if isinstance(value, Leaf) else Kind.OBJECT


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _path(path: str, name: str, value: Leaf | Node) -> str:
    here = _joined(path, name)
    if isinstance(value, Leaf) or not value.members:
        return here
    if value.types & PRODUCT_TYPES and name == "mainEntity":
        return ""
    return _SAME_AGAIN.get(here, here)
