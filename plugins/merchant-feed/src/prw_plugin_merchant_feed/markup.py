"""XML feeds: the items of an RSS or Atom document, or of a shop's own, one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from prw_plugin_merchant_feed.encoding import FEED, stream
from prw_plugin_merchant_feed.words import Names, told
from prw_sdk.adapter import Kind, NotARecord
from prw_sdk.evidence import Locator, Part, Selector, SelectorType
from prw_sdk.locate import MOST_BYTES
from prw_sdk.take import Leaf

ITEMS = ("item", "entry")
AUTHOR = "channel.author.name"
"""Who made the feed, before what the feed is called."""

DEEPEST = 8
"""What is nested deeper in an item is not looked at."""

_PIECE = 65_536
_TEXTS = frozenset({"title", "description", "summary", "content"})
"""Elements whose inner markup is part of a text."""

_Placed = tuple[etree._Element, str, tuple[str, ...]]
"""An element, the path that leads to it, and the names above it."""

_DECLARATION = re.compile(r"^<\?xml[^>]*\?>")


@dataclass(frozen=True, slots=True)
class Item:
    """One item's leaves; with `is_channel` what the feed says of itself before its first item."""

    leaves: tuple[Leaf, ...]
    is_channel: bool = False


class _Broken(Exception):
    """The document is not well-formed from somewhere on."""


def items(part: Part, names: Names, item: str | None) -> Iterator[Item]:
    """What the feed says of itself, then each item; raises `NotARecord` for a page.

    Of the document no more is held at a time than one item, unless it is broken. What stands behind a break is
    read from the whole document, since a parser that is fed by pieces mends it otherwise than one that has it all, and
    a locator is followed in the whole.
    """
    wanted, given = (item,) if item else ITEMS, 0
    try:
        for found in _items(_streamed(part, wanted), wanted, names):
            yield found
            given += 1
    except _Broken:
        yield from islice(_items(_walked(part, wanted), wanted, names), given, None)


def _items(elements: Iterator[_Placed], wanted: tuple[str, ...], names: Names) -> Iterator[Item]:
    channel: list[Leaf] = []
    is_told = False
    for element, path, above in elements:
        if _local(element) in wanted:
            if not is_told:
                channel.sort(key=lambda leaf: leaf.name != AUTHOR)
                yield Item(tuple(channel), is_channel=True)
                is_told = True
            yield Item(tuple(_leaves(element, path, "", names, 0)))
        elif not is_told and len(element) == 0:
            channel += _own(element, path, ".".join(("channel", *above, _local(element))))


def _streamed(part: Part, wanted: tuple[str, ...]) -> Iterator[_Placed]:
    """Items, and what stands outside of them, each at its end with its path and the names above it."""
    counts, names, depth_of_item = [0], list[str](), 0
    for event, element in _events(part):
        if event == "start":
            counts[-1] += 1
            counts.append(0)
            names.append(_local(element))
            if not depth_of_item and names[-1] in wanted:
                depth_of_item = len(names)
            if len(names) == 1:
                _must_be_a_feed(element)
            continue
        counts.pop()
        if not depth_of_item or len(names) == depth_of_item:
            path = "/*" + "".join(f"/*[{count}]" for count in counts[1:])
            yield element, path, _above(names[:-1])
            _forget(element)
            depth_of_item = 0
        names.pop()


def _walked(part: Part, wanted: tuple[str, ...]) -> Iterator[_Placed]:
    """As `_streamed`, from the document as a whole, as a locator is followed."""
    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, encoding="utf-8"
    )
    try:
        root = etree.fromstring(_Utf8(part).whole(), parser)
    except etree.XMLSyntaxError:
        return
    if root is not None:
        _must_be_a_feed(root)
        yield from _below(root, "/*", (), wanted)


def _below(
    element: etree._Element, path: str, above: tuple[str, ...], wanted: tuple[str, ...]
) -> Iterator[_Placed]:
    name = _local(element)
    if name not in wanted:
        for number, child in enumerate(element.iterchildren(etree.Element), start=1):
            yield from _below(child, f"{path}/*[{number}]", (*above, name), wanted)
    yield element, path, _above(above)


def _above(names: Sequence[str]) -> tuple[str, ...]:
    """The names above an element that tell it apart: neither the root's nor the channel's."""
    return tuple(name for name in names[1:] if name != "channel")


def _must_be_a_feed(root: etree._Element) -> None:
    if _local(root).lower() == "html":
        raise NotARecord("a page, and no feed")


def _events(part: Part) -> Iterator[tuple[str, etree._Element]]:
    """The parser's events up to where the document breaks; raises `_Broken` there.

    A document that is larger than any locator is followed in is read on by pieces.
    """
    parser = etree.iterparse(
        _Utf8(part),
        events=("start", "end"),
        recover=True,
        resolve_entities=False,
        no_network=True,
        encoding="utf-8",
    )
    is_followed = len(part.body) <= MOST_BYTES
    try:
        for event, element in parser:
            if is_followed and _is_broken(parser):
                raise _Broken
            yield event, element
    except etree.XMLSyntaxError:
        if is_followed:
            raise _Broken from None
        return
    if is_followed and _is_broken(parser):
        raise _Broken


def _is_broken(parser: etree.iterparse) -> bool:
    """Whether something was mended; a prefix without its namespace is none, every parser keeps it as it stands."""
    return any(error.domain != etree.ErrorDomains.NAMESPACE for error in parser.error_log)


class _Utf8:
    """The text of a part in UTF-8 without its declaration, as the parser reads it: piece by piece."""

    def __init__(self, part: Part) -> None:
        self._text = stream(part)
        start = self._text.read(_PIECE).lstrip("\ufeff \t\r\n")
        self._start = _DECLARATION.sub("", start)

    def read(self, size: int = -1) -> bytes:
        """The next piece; of no more characters than `size`, and of none at the end."""
        piece = self._start or self._text.read(_PIECE if size < 0 else min(size, _PIECE))
        self._start = ""
        return piece.encode("utf-8", errors="replace")

    def whole(self) -> bytes:
        """All of it at once."""
        return (self._start + self._text.read()).encode("utf-8", errors="replace")


def _forget(element: etree._Element) -> None:
    """Free what was read, and everything before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _leaves(
    element: etree._Element, path: str, name: str, names: Names, depth: int
) -> Iterator[Leaf]:
    for number, child in enumerate(element.iterchildren(etree.Element), start=1):
        local = _local(child)
        here = f"{name}.{local}" if name else names.of(local)
        where = f"{path}/*[{number}]"
        if local == "product_detail":
            yield from _detail(child, where)
        if len(child) and depth < DEEPEST and here not in _TEXTS:
            yield from _leaves(child, where, here, names, depth + 1)
        else:
            yield from _own(child, where, here)


def _own(element: etree._Element, path: str, name: str) -> Iterator[Leaf]:
    """An element's text and attributes; a link of Atom says in an attribute where it leads."""
    text = told(str(element.xpath("string()")))
    is_atom_link = not text and "href" in element.attrib
    if not is_atom_link:
        yield _leaf(name, text, path)
    for attribute, value in element.attrib.items():
        label = str(attribute)
        if not label.startswith("{"):
            is_address = is_atom_link and label == "href"
            yield _leaf(name if is_address else f"{name}.{label}", told(str(value)), path, label)


def _detail(element: etree._Element, path: str) -> Iterator[Leaf]:
    """A detail's value under its own name: ``detail.Capacity``."""
    label, value = "", None
    for number, child in enumerate(element.iterchildren(etree.Element), start=1):
        text = told(str(child.xpath("string()")))
        if _local(child) == "attribute_name":
            label = " ".join(text.split())
        elif _local(child) == "attribute_value":
            value = (text, f"{path}/*[{number}]")
    if label and value is not None:
        yield _leaf(f"detail.{label}", *value)


def _leaf(name: str, text: str, path: str, attribute: str | None = None) -> Leaf:
    selector = Selector(SelectorType.XPATH, path, attribute=attribute)
    return Leaf(name, Kind.TEXT if text else Kind.EMPTY, text, Locator(FEED, selector))


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2].removeprefix("g:")
