"""What a page shows in its markup: single places by CSS, and values beside their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import parsel
from lxml import etree

from prw_sdk.adapter import Kind
from prw_sdk.evidence import Locator, Part, Selector, SelectorType
from prw_sdk.take.leaves import Leaf, joined
from prw_sdk.take.text import is_template

_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def page_leaves(part: Part, name: str, css: str, attribute: str | None = None) -> tuple[Leaf, ...]:
    """Every element of a page that a CSS selector finds, under one name: its text, or that attribute of it.

    White space is folded; an element that lacks the attribute is passed over. Raises ValueError for a selector that
    is none.
    """
    return tuple(
        _leaf(part, name, path, element, attribute)
        for path, element in _found(part, css)
        if attribute is None or attribute in element.attrib
    )


def labelled(part: Part, css: str, name: str = "") -> tuple[Leaf, ...]:
    """Values that stand right after their labels: ``th`` and ``td``, ``dt`` and ``dd``, two ``span``.

    `css` finds the labels; each names its value by its own text, without a colon at the end, under `name`. A label
    that nothing follows, or that says nothing, is passed over. Raises ValueError for a selector that is none.
    """
    leaves = []
    for path, label in _found(part, css):
        called = _text(label, None).rstrip(":").rstrip()
        value = label.getnext()
        while value is not None and not isinstance(value.tag, str):
            value = value.getnext()
        if called and value is not None:
            beside = f"{path}/following-sibling::*[1]"
            leaves.append(_leaf(part, joined(name, called), beside, value, None))
    return tuple(leaves)


def _found(part: Part, css: str) -> Iterator[tuple[str, etree._Element]]:
    """The elements that a selector finds, each with the XPath that leads to it."""
    try:
        path = parsel.css2xpath(css)
    except SyntaxError as wrong:  # what the translator raises for a selector that is none
        raise ValueError(f"{css!r} is no CSS selector: {wrong}") from wrong
    tree = tree_of(part)
    found = [] if tree is None else tree.xpath(path)
    for number, element in enumerate(found if isinstance(found, list) else [], start=1):
        if isinstance(element, etree._Element):
            yield f"({path})[{number}]", element


def _leaf(part: Part, name: str, path: str, element: etree._Element, attribute: str | None) -> Leaf:
    text = _NO_TEXT.sub("\ufffd", _text(element, attribute))
    text = "" if is_template(text) else text
    where = Locator(part.role, Selector(SelectorType.XPATH, path, attribute))
    return Leaf(name, Kind.TEXT if text else Kind.EMPTY, text, where)


def _text(element: etree._Element, attribute: str | None) -> str:
    text = str(element.xpath("string()")) if attribute is None else element.get(attribute, "")
    return " ".join(text.split())


@lru_cache(maxsize=16)
def tree_of(part: Part) -> etree._Element | None:
    """A page's document, kept for the next call; None where there is none. Nothing may be changed in it."""
    raw = part.text().lstrip("\ufeff \t\r\n").encode("utf-8", errors="replace")
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        return etree.fromstring(raw, parser)
    except etree.XMLSyntaxError:
        return None
