"""One capture taken apart: what its page shows, what its rows label, what its data and its policies state."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from parsel import css2xpath

from prw_plugin_rendered_shop.inventory import DATA, PAGE
from prw_plugin_rendered_shop.settings import POLICIES, Reading, reading, split
from prw_sdk.adapter import Kind, NotARecord
from prw_sdk.evidence import Capture, Locator, Part, Presence, Selector, SelectorType
from prw_sdk.take import Leaf, json_leaves, parsed

MOST_STATEMENTS = 40
"""Of one policy page; what stands after them is kept, and not read."""


def leaves(capture: Capture) -> tuple[Leaf, ...]:
    """Everything that a capture states; raises `NotARecord` where its page shows no product."""
    told, page = reading(capture.config), _page(capture)
    tree = parse(page)
    if tree is None:
        raise NotARecord("an empty page")
    if told.not_found is not None and select(tree, told.not_found):
        raise NotARecord("the page says that there is no such product")
    shown = tuple(_shown(tree, told))
    if not any(leaf.name == "title" for leaf in shown):
        raise NotARecord("the page shows no title: see `selectors` in the source's settings")
    return (*shown, *_rows(tree, told), *_data(capture), *_policies(capture, told))


def _page(capture: Capture) -> Part:
    if capture.presence is Presence.ABSENT:
        raise NotARecord("the source says that this page is gone")
    try:
        return capture.part(PAGE)
    except KeyError:
        raise NotARecord(f"the capture has no part {PAGE!r}") from None


def _shown(tree: etree._Element, told: Reading) -> Iterator[Leaf]:
    """What the page shows where the settings look: the first element that a selector finds."""
    for name, selector in told.selectors.items():
        css, attribute = split(selector)
        found = select(tree, css)
        if not found or (attribute is not None and found[0].get(attribute) is None):
            continue
        value = text(found[0]) if attribute is None else str(found[0].get(attribute))
        where = Selector(SelectorType.CSS, css, attribute=attribute)
        yield _leaf(name, value, Locator(PAGE, where))


def _rows(tree: etree._Element, told: Reading) -> Iterator[Leaf]:
    for row in select(tree, told.rows):
        labels, values = select(row, told.row_label), select(row, told.row_value)
        if labels and values and (label := " ".join(text(labels[0]).split()).rstrip(" :")):
            yield _leaf(f"specs.{label}", text(values[0]), _at(PAGE, values[0]))


def _data(capture: Capture) -> Iterator[Leaf]:
    part = _part(capture, DATA)
    if part is not None:
        try:
            yield from json_leaves(parsed(part.text()), DATA, name=DATA)
        except ValueError:
            return


def _policies(capture: Capture, told: Reading) -> Iterator[Leaf]:
    """Every statement of the policies, each a leaf of its own, so that a change of one shows as one."""
    for name in POLICIES:
        part = _part(capture, f"policy.{name}")
        tree = None if part is None else parse(part)
        for element in () if tree is None else select(tree, told.statements)[:MOST_STATEMENTS]:
            if text(element).strip():
                yield _leaf(f"policy.{name}", text(element), _at(f"policy.{name}", element))


def _part(capture: Capture, role: str) -> Part | None:
    return next((part for part in capture.parts if part.role == role), None)


def _leaf(name: str, value: str, where: Locator) -> Leaf:
    stated = " ".join(value.replace("\x00", "\ufffd").split())
    return Leaf(name, Kind.TEXT if stated else Kind.EMPTY, stated, where)


def _at(role: str, element: etree._Element) -> Locator:
    """The element's place, told by positions alone, since a damaged page has tags of any name."""
    steps, here = "", element
    while (parent := here.getparent()) is not None:
        before = sum(isinstance(one.tag, str) for one in here.itersiblings(preceding=True))
        steps, here = f"/*[{before + 1}]{steps}", parent
    return Locator(role, Selector(SelectorType.XPATH, f"/*{steps}"))


def parse(part: Part) -> etree._Element | None:
    """The part's document; None where there is none in it."""
    raw = part.text().lstrip("\ufeff \t\r\n").encode("utf-8", errors="replace")
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        return etree.fromstring(raw, parser)
    except etree.XMLSyntaxError:
        return None


def select(within: etree._Element, css: str) -> list[etree._Element]:
    """The elements that a CSS selector finds within another, in their order."""
    found = within.xpath(css2xpath(css))
    return (
        [one for one in found if isinstance(one, etree._Element)] if isinstance(found, list) else []
    )


def text(element: etree._Element) -> str:
    """All the text in an element, as it stands."""
    return str(element.xpath("string()"))
