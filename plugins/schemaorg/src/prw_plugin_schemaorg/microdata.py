"""Microdata: the items of a page as nodes, each value with the path of its element (WHATWG HTML, microdata)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from lxml import etree

from prw_plugin_schemaorg.dom import elements, text
from prw_plugin_schemaorg.nodes import Leaf, Markup, Node, clean, local_name
from prw_sdk.adapter import Kind
from prw_sdk.evidence import Selector, SelectorType
from prw_sdk.take import is_template

DEEPEST = 40
MOST_NODES = 20_000
"""A page whose items refer to each other in circles would have no end of them."""

_SOURCES = ("audio", "embed", "iframe", "img", "source", "track", "video")
_VALUE_ATTRIBUTE = {
    **dict.fromkeys(_SOURCES, "src"),
    **dict.fromkeys(("a", "area", "link"), "href"),
    "object": "data",
    "data": "value",
    "meter": "value",
    "time": "datetime",
}
_PLAIN_TAG = re.compile(r"[a-z][a-z0-9]*")


def roots(tree: etree._Element) -> Iterator[Node]:
    """The items that are no property of another item."""
    page = _Items(tree)
    return (page.node(element, ()) for element in page.top)


class Paths:
    """XPaths of elements, from the nearest ancestor whose id is its own."""

    def __init__(self, tree: etree._Element) -> None:
        self._times = Counter(one.get("id", "") for one in elements(tree, "//*[@id]"))
        self._steps: dict[etree._Element, str] = {}

    def of(self, element: etree._Element) -> str:
        """An XPath whose first match is the element."""
        steps: list[str] = []
        while (parent := element.getparent()) is not None:
            name = element.get("id", "")
            if name and self._times[name] == 1 and not re.search(r"[\"\s]", name):
                return "/".join((f'//*[@id="{name}"]', *reversed(steps)))
            steps.append(self._step(element, parent))
            element = parent
        return "/" + "/".join(("*", *reversed(steps)))

    def _step(self, element: etree._Element, parent: etree._Element) -> str:
        if element not in self._steps:
            times: Counter[str] = Counter()
            for number, child in enumerate(parent.iterchildren(etree.Element), start=1):
                tag = str(child.tag)
                times[tag] += 1
                is_plain = _PLAIN_TAG.fullmatch(tag)
                self._steps[child] = f"{tag}[{times[tag]}]" if is_plain else f"*[{number}]"
        return self._steps[element]


class _Items:
    """One pass over the page: which item each property belongs to."""

    def __init__(self, tree: etree._Element) -> None:
        self.top: list[etree._Element] = []
        self._paths = Paths(tree)
        self._left = MOST_NODES
        self._properties: dict[etree._Element, list[etree._Element]] = {}
        self._owner: dict[etree._Element, etree._Element | None] = {}
        self._walk(tree)
        self._follow_references(tree)

    def _walk(self, tree: etree._Element) -> None:
        open_items: list[etree._Element] = []
        for event, element in etree.iterwalk(tree, events=("start", "end")):
            if event == "end":
                if open_items and open_items[-1] is element:
                    open_items.pop()
                continue
            self._enter(element, open_items[-1] if open_items else None)
            if "itemscope" in element.attrib:
                open_items.append(element)

    def _enter(self, element: etree._Element, owner: etree._Element | None) -> None:
        if "itemprop" in element.attrib:
            self._owner[element] = owner
            if owner is not None:
                self._properties[owner].append(element)
        if "itemscope" in element.attrib:
            self._properties[element] = []
            if owner is None or "itemprop" not in element.attrib:
                self.top.append(element)

    def _follow_references(self, tree: etree._Element) -> None:
        """Add what ``itemref`` names: properties outside the item, in elements named by id."""
        named = {one.get("id", ""): one for one in reversed(elements(tree, "//*[@id]"))}
        referred: set[etree._Element] = set()
        left = MOST_NODES
        for item, properties in self._properties.items():
            for name in item.get("itemref", "").split():
                if name not in named or left <= 0:
                    continue
                inside = list(named[name].iter())
                left -= len(inside)
                within = set(inside)
                loose = [one for one in inside if self._is_loose(one, within)]
                properties.extend(loose)
                referred.update(loose)
        self.top = [one for one in self.top if one not in referred]

    def _is_loose(self, element: etree._Element, within: set[etree._Element]) -> bool:
        return element in self._owner and self._owner[element] not in within

    def node(self, element: etree._Element, above: tuple[etree._Element, ...]) -> Node:
        """The item as a node; deeper than `DEEPEST`, or beyond `MOST_NODES`, nothing is read."""
        self._left -= 1
        is_read = len(above) < DEEPEST and self._left > 0
        return Node(
            Markup.MICRODATA,
            frozenset(map(local_name, element.get("itemtype", "").split())),
            element.get("itemid"),
            tuple(self._members(element, (*above, element))) if is_read else (),
            tuple(self._silent(element)) if is_read else (),
        )

    def _silent(self, item: etree._Element) -> Iterator[tuple[str, Kind]]:
        for element in self._properties[item]:
            if "itemscope" not in element.attrib and self._leaf(element) is None:
                for name in element.get("itemprop", "").split():
                    yield local_name(name), Kind.EMPTY

    def _members(
        self, item: etree._Element, above: tuple[etree._Element, ...]
    ) -> Iterator[tuple[str, Leaf | Node]]:
        for element in self._properties[item]:
            if element in above:
                continue
            is_item = "itemscope" in element.attrib
            value = self.node(element, above) if is_item else self._leaf(element)
            if value is not None:
                names = map(local_name, element.get("itemprop", "").split())
                yield from ((name, value) for name in names)

    def _leaf(self, element: etree._Element) -> Leaf | None:
        """The value: `content` on any element (as shops use it), its own attribute, else its text."""
        own = ("content", _VALUE_ATTRIBUTE.get(str(element.tag), "content"))
        attribute = next((name for name in own if element.get(name, "").strip()), None)
        value = element.get(attribute, "") if attribute else " ".join(text(element).split())
        if not value or is_template(value):
            return None
        where = Selector(SelectorType.XPATH, self._paths.of(element), attribute=attribute)
        return Leaf(clean(value), where)
