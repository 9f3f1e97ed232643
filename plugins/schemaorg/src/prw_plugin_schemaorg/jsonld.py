"""JSON-LD: the scripts of a page as nodes, each value with the script and the JSON Pointer where it stands."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from prw_plugin_schemaorg.dom import elements, text
from prw_plugin_schemaorg.nodes import Leaf, Markup, Node, clean, local_name
from prw_sdk.adapter import Kind
from prw_sdk.evidence import Selector, SelectorType
from prw_sdk.take import Number, is_template, parsed

SCRIPTS = "//script[contains(translate(@type,'DJLNOS','djlnos'),'ld+json')]"
DEEPEST = 40

_PLAIN = '//script[@type="application/ld+json"]'


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

    def leaf(self, stated: str, pointer: str, kind: Kind) -> Leaf:
        """A value of this script."""
        within = Selector(SelectorType.JSON_POINTER, pointer)
        where = Selector(SelectorType.XPATH, self._xpath, refined_by=within)
        return Leaf(clean(stated), where, kind)


def _loads(script: str) -> object:
    """The first JSON value of a script; None where none can be read safely."""
    try:
        return parsed(script)
    except ValueError:
        return None


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
        tuple((local_name(name), kind) for name, item in value.items() if (kind := _silent(item))),
    )


def _silent(item: object) -> Kind | None:
    """How a member states nothing, or None where it states something."""
    if item is None:
        return Kind.NULL
    is_empty = item in ([], {}) or (isinstance(item, str) and not _says(item))
    return Kind.EMPTY if is_empty else None


def _says(text: str) -> bool:
    """Whether a text states something: it is not blank, nor a template that nobody filled in."""
    return bool(text.strip()) and not is_template(text)


def _members(
    value: dict[str, object], at: Script, pointer: str, depth: int
) -> Iterator[tuple[str, Leaf | Node]]:
    for name, item in value.items():
        if not name.startswith("@"):
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            yield from ((local_name(name), found) for found in _values(item, at, place, depth + 1))


def _values(value: object, at: Script, pointer: str, depth: int) -> Iterator[Leaf | Node]:
    """The leaves and nodes that a member holds; blanks, templates and null state nothing."""
    if isinstance(value, bool):
        yield at.leaf("true" if value else "false", pointer, Kind.BOOLEAN)
    elif isinstance(value, str) and _says(value):
        kind = Kind.NUMBER if isinstance(value, Number) else Kind.TEXT
        yield at.leaf(value, pointer, kind)
    elif isinstance(value, list) and depth < DEEPEST:
        for index, item in enumerate(value):
            yield from _values(item, at, f"{pointer}/{index}", depth + 1)
    elif isinstance(value, dict) and "@value" in value:
        yield from _values(value["@value"], at, f"{pointer}/@value", depth + 1)
    elif isinstance(value, dict) and value and depth < DEEPEST:
        yield _node(value, at, pointer, depth)
