"""JSON-LD: the scripts of a page as nodes, each value with the script and the JSON Pointer where it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from lxml import etree

from prw_plugin_schemaorg.dom import elements, text
from prw_plugin_schemaorg.nodes import Leaf, Markup, Node, clean, local_name
from prw_sdk.evidence import Selector, SelectorType

SCRIPTS = "//script[contains(translate(@type,'DJLNOS','djlnos'),'ld+json')]"
DEEPEST = 40

_PLAIN = '//script[@type="application/ld+json"]'

# What is not closed goes on to the end, so that no text is looked through again for what it has not got.
_STRING = r'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)'
_NOISE = re.compile(
    rf"({_STRING})|/\*.*?(?:\*/|\Z)|//[^\n]*|<!--|-->|<!\[CDATA\[|\]\]>|,(?=\s*[}}\]])", re.DOTALL
)
_BAD_ESCAPE = re.compile(r'\\(?:([^"\\/bfnrtu])|(["\\/bfnrtu]))')
_DECODER = json.JSONDecoder(strict=False, parse_float=str, parse_int=str, parse_constant=str)


def roots(tree: etree._Element) -> Iterator[Node]:
    """Every node that stands by itself: at the top of a script, in a list there, or in a ``@graph``."""
    scripts = elements(tree, SCRIPTS)
    is_plain = all(script.get("type") == "application/ld+json" for script in scripts)
    path = _PLAIN if is_plain else SCRIPTS
    for number, script in enumerate(scripts, start=1):
        document = _loads(text(script))
        found = _standing(document, Script(f"({path})[{number}]"), "")
        yield from (node for node in found if isinstance(node, Node))


class Script:
    """One script element; makes the selectors of its values."""

    def __init__(self, xpath: str) -> None:
        self._xpath = xpath

    def leaf(self, stated: str, pointer: str) -> Leaf:
        """A value of this script."""
        within = Selector(SelectorType.JSON_POINTER, pointer)
        return Leaf(clean(stated), Selector(SelectorType.XPATH, self._xpath, refined_by=within))


def _loads(script: str) -> object:
    """The first JSON value of a script, numbers as their literal text; None where none can be read safely.

    Comments, CDATA marks, trailing commas, raw control characters and whatever follows the value are
    tolerated, since none of them can change what a value says: each counts as a blank.
    """
    try:
        return _DECODER.decode(script)
    except (ValueError, RecursionError):
        mended = _NOISE.sub(lambda found: _mended(found[1] or " "), script).lstrip(" \t\r\n\ufeff;")
    try:
        return _DECODER.raw_decode(mended)[0]
    except (ValueError, RecursionError):
        return None


def _mended(string: str) -> str:
    return _BAD_ESCAPE.sub(lambda escape: escape[1] or escape[0], string)


def _standing(value: object, at: Script, pointer: str) -> Iterator[Leaf | Node]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _standing(item, at, f"{pointer}/{index}")
    elif isinstance(value, dict):
        yield from _standing(value.get("@graph"), at, f"{pointer}/@graph")
        if any(name not in ("@context", "@graph", "@id") for name in value):
            yield _node(value, at, pointer, 0)


def _node(value: dict[str, object], at: Script, pointer: str, depth: int) -> Node:
    types = value.get("@type")
    identity = value.get("@id")
    return Node(
        Markup.JSON_LD,
        frozenset(
            local_name(str(name)) for name in (types if isinstance(types, list) else [types])
        ),
        identity if isinstance(identity, str) else None,
        tuple(_members(value, at, pointer, depth)),
    )


def _members(
    value: dict[str, object], at: Script, pointer: str, depth: int
) -> Iterator[tuple[str, Leaf | Node]]:
    for name, item in value.items():
        if not name.startswith("@"):
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            yield from ((local_name(name), found) for found in _values(item, at, place, depth + 1))


def _values(value: object, at: Script, pointer: str, depth: int) -> Iterator[Leaf | Node]:
    """The leaves and nodes that a member holds; empty strings and null state nothing."""
    if isinstance(value, bool):
        yield at.leaf("true" if value else "false", pointer)
    elif isinstance(value, str) and value.strip():
        yield at.leaf(value, pointer)
    elif isinstance(value, list) and depth < DEEPEST:
        for index, item in enumerate(value):
            yield from _values(item, at, f"{pointer}/{index}", depth + 1)
    elif isinstance(value, dict) and "@value" in value:
        yield from _values(value["@value"], at, f"{pointer}/@value", depth + 1)
    elif isinstance(value, dict) and depth < DEEPEST:
        yield _node(value, at, pointer, depth)
