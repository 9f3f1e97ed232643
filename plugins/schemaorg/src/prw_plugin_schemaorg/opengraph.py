"""OpenGraph: the meta elements of a page as one node, each property under the name that the publisher wrote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from lxml import etree

from prw_plugin_schemaorg.nodes import Leaf, Markup, Node, clean
from prw_sdk.adapter import Kind
from prw_sdk.evidence import Selector, SelectorType
from prw_sdk.take import is_template

_LABELLED = re.compile(
    r"(og|product|twitter|al|fb|article|book|business|place|profile|video|music):[^\"\s]+"
)


def read(tree: etree._Element) -> Node:
    """All labelled meta elements of the page; its type is what ``og:type`` says."""
    found = tuple(_members(tree))
    members = tuple((name, leaf) for name, leaf in found if leaf.text)
    kinds = (leaf.text for name, leaf in members if name == "og:type")
    silent = tuple((name, Kind.EMPTY) for name, leaf in found if not leaf.text)
    return Node(Markup.OPENGRAPH, frozenset(kinds), None, members, silent)


def _members(tree: etree._Element) -> Iterator[tuple[str, Leaf]]:
    times: Counter[str] = Counter()
    for element in tree.iter("meta"):
        attribute = "property" if "property" in element.attrib else "name"
        written = element.get(attribute, "")
        only = "" if attribute == "property" else "[not(@property)]"
        label = f'//meta[@{attribute}="{written}"]{only}'
        times[label] += 1
        if _LABELLED.fullmatch(written.strip().lower()):
            yield written.strip().lower(), _leaf(element, f"({label})[{times[label]}]")


def _leaf(element: etree._Element, path: str) -> Leaf:
    where = Selector(SelectorType.XPATH, path, attribute="content")
    stated = element.get("content", "")
    says_something = stated.strip() and not is_template(stated)
    return Leaf(clean(stated) if says_something else "", where)
