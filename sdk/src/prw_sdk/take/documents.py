"""Walking JSON documents, and the JSON-LD scripts of a page, into nodes whose leaves know where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from lxml import etree

from prw_sdk.adapter import Kind, NotARecord
from prw_sdk.evidence import Locator, Part, Selector, SelectorType
from prw_sdk.take.leaves import Leaf, Node, joined
from prw_sdk.take.markup import tree_of
from prw_sdk.take.text import Number, is_template, parsed

DEEPEST = 40
"""What is nested deeper than this is not looked at."""

MOST_REFERRED = 20_000
"""So many objects and values are followed by reference: pages whose parts refer to each other have no end of them."""


def json_leaves(value: object, role: str, pointer: str = "", name: str = "") -> Iterator[Leaf]:
    """Every leaf of a JSON value that `parsed` gave, under dotted names.

    `pointer` (RFC 6901) says where the value stands in the part of that role, `name` what it stands under. Items of a
    list share the list's name.
    """
    walk = _Walk(_Place(role))
    for found in walk.of(value, pointer, name, 0):
        yield from (found,) if isinstance(found, Leaf) else found.leaves


@lru_cache(maxsize=16)
def json_node(part: Part, pointer: str = "") -> Node:
    """The object at that place of a JSON part; raises `NotARecord` where the part holds none there.

    It is kept for the next call, so that `stated` need not parse again what `read` has parsed; change nothing in it.
    """
    try:
        value = parsed(part.text())
    except ValueError:
        raise NotARecord(f"the part {part.role!r} is no JSON") from None
    found = _at(value, pointer)
    if not isinstance(found, Mapping):
        where = f" at {pointer!r}" if pointer else ""
        raise NotARecord(f"the part {part.role!r} holds no object{where}")
    return _Walk(_Place(part.role)).node(found, pointer, "", 0)


@lru_cache(maxsize=16)
def jsonld(part: Part, *types: str) -> tuple[Node, ...]:
    """The page's JSON-LD objects of these types (all where none is named), in document order; kept for the next call.

    An object counts where it stands by itself: at the top of a script, in a list there, in an ``@graph``, or as the
    ``mainEntity`` of one of those. ``Product`` also means ``http://schema.org/Product`` and ``schema:Product``. A
    script that cannot be read is passed over; an object that is only referred to (``{"@id": …}``) stands for the one
    meant.
    """
    documents = list(_scripts(part))
    meant = _identities(documents)
    wanted = set(map(_local, types))
    budget = iter(range(MOST_REFERRED))
    found: list[Node] = []
    for place, document in documents:
        walk = _Walk(place, meant, budget)
        for value, pointer in _standing(document, ""):
            if not wanted or wanted & _types(value):
                found.append(walk.node(value, pointer, "", 0))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a JSON document stands: a part of its own, or a script of one (then by its XPath)."""

    role: str
    script: str | None = None

    def at(self, pointer: str) -> Locator:
        within = Selector(SelectorType.JSON_POINTER, pointer)
        if self.script is None:
            return Locator(self.role, within)
        return Locator(self.role, Selector(SelectorType.XPATH, self.script, refined_by=within))


_Meant = Mapping[str, tuple[_Place, str, Mapping[str, object]]]
_NOTHING_MEANT: _Meant = MappingProxyType({})
_NO_BUDGET: Iterator[int] = iter(())


class _Walk:
    """Goes through one document; into others only where an object refers there, and while `budget` lasts."""

    def __init__(
        self,
        place: _Place,
        meant: _Meant = _NOTHING_MEANT,
        budget: Iterator[int] = _NO_BUDGET,
        path: frozenset[str] = frozenset(),
    ) -> None:
        self._place = place
        self._meant = meant
        self._budget = budget
        self._path = path
        self._is_ld = place.script is not None

    def node(self, value: Mapping[str, object], pointer: str, name: str, depth: int) -> Node:
        """The object with everything in it."""
        leaves: list[Leaf] = []
        children: list[Node] = []
        for found in self._members(value, pointer, name, depth):
            if isinstance(found, Leaf):
                leaves.append(found)
            else:
                children.append(found)
                leaves.extend(found.leaves)
        return Node(value, tuple(leaves), name, tuple(children))

    def of(self, value: object, pointer: str, name: str, depth: int) -> Iterator[Leaf | Node]:
        """The value's own leaf, its node, or those of a list's items."""
        if depth > DEEPEST or (self._path and next(self._budget, None) is None):
            return
        if isinstance(value, Mapping) and value:
            yield from self._object(value, pointer, name, depth)
        elif isinstance(value, list) and value:
            for index, item in enumerate(value):
                yield from self.of(item, f"{pointer}/{index}", name, depth + 1)
        else:
            kind, text = _scalar(value)
            if self._is_ld and kind is Kind.TEXT and is_template(text):
                kind, text = Kind.EMPTY, ""
            yield Leaf(name, kind, _NO_TEXT.sub("\ufffd", text), self._place.at(pointer))

    def _object(
        self, value: Mapping[str, object], pointer: str, name: str, depth: int
    ) -> Iterator[Leaf | Node]:
        if self._is_ld and "@value" in value:
            yield from self.of(value["@value"], f"{pointer}/@value", name, depth + 1)
            return
        identity = value.get("@id")
        meant = self._meant.get(identity) if isinstance(identity, str) and len(value) == 1 else None
        if meant is None:
            yield self.node(value, pointer, name, depth)
        elif identity not in self._path:
            place, there, other = meant
            path = self._path | {str(identity)}
            inner = _Walk(place, self._meant, self._budget, path)
            yield inner.node(other, there, name, depth + 1)

    def _members(
        self, value: Mapping[str, object], pointer: str, name: str, depth: int
    ) -> Iterator[Leaf | Node]:
        for member, inner in value.items():
            if self._is_ld and member.startswith("@"):
                continue
            called = joined(name, _local(member) if self._is_ld else member)
            yield from self.of(inner, f"{pointer}/{_escaped(member)}", called, depth + 1)


def _scalar(value: object) -> tuple[Kind, str]:
    """The kind and text of what has no members; what JSON cannot hold counts as its text."""
    if isinstance(value, Number):
        return Kind.NUMBER, str(value)
    if isinstance(value, str):
        return (Kind.TEXT, value) if value.strip() else (Kind.EMPTY, "")
    if isinstance(value, bool):
        return Kind.BOOLEAN, "true" if value else "false"
    if value is None:
        return Kind.NULL, ""
    if isinstance(value, list | Mapping):
        return Kind.EMPTY, ""
    return Kind.NUMBER, str(value)


def _escaped(member: str) -> str:
    return member.replace("~", "~0").replace("/", "~1")


def _at(value: object, pointer: str) -> object:
    for token in pointer.split("/")[1:]:
        wanted = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(wanted)
        elif isinstance(value, list) and wanted.isdecimal() and int(wanted) < len(value):
            value = value[int(wanted)]
        else:
            return None
    return value


def _local(name: str) -> str:
    """``Product`` for ``http://schema.org/Product`` and ``schema:Product``."""
    return re.split(r"[/#:]", name.strip())[-1]


def _types(value: Mapping[str, object]) -> set[str]:
    types = value.get("@type")
    return {_local(str(one)) for one in (types if isinstance(types, list) else [types])}


_PLAIN = '//script[@type="application/ld+json"]'
_SCRIPTS = "//script[contains(translate(@type,'DJLNOS','djlnos'),'ld+json')]"


def _scripts(part: Part) -> Iterator[tuple[_Place, object]]:
    tree = tree_of(part)
    found = [] if tree is None else tree.xpath(_SCRIPTS)
    scripts = (
        [one for one in found if isinstance(one, etree._Element)] if isinstance(found, list) else []
    )
    path = _PLAIN if all(one.get("type") == "application/ld+json" for one in scripts) else _SCRIPTS
    for number, script in enumerate(scripts, start=1):
        try:
            yield _Place(part.role, f"({path})[{number}]"), parsed(str(script.xpath("string()")))
        except ValueError:
            continue


def _standing(value: object, pointer: str) -> Iterator[tuple[Mapping[str, object], str]]:
    """The objects that stand by themselves, each with its pointer."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _standing(item, f"{pointer}/{index}")
    elif isinstance(value, Mapping):
        if any(name not in ("@context", "@graph", "@id") for name in value):
            yield value, pointer
        for inner in ("@graph", "mainEntity"):
            yield from _standing(value.get(inner), f"{pointer}/{inner}")


def _identities(documents: Iterable[tuple[_Place, object]]) -> _Meant:
    """Every object by its ``@id``; of several with one identity the fullest is meant."""
    meant: dict[str, tuple[_Place, str, Mapping[str, object]]] = {}
    for place, document in documents:
        for value, pointer in _every(document):
            identity = value.get("@id")
            if isinstance(identity, str) and len(value) > len(meant.get(identity, _NO_ONE)[2]) + 1:
                meant[identity] = (place, pointer, value)
    return MappingProxyType(meant)


def _every(document: object) -> Iterator[tuple[Mapping[str, object], str]]:
    waiting: list[tuple[object, str]] = [(document, "")]
    while waiting:
        value, pointer = waiting.pop()
        if isinstance(value, Mapping):
            yield value, pointer
            waiting += [(inner, f"{pointer}/{_escaped(name)}") for name, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(inner, f"{pointer}/{index}") for index, inner in enumerate(value)]


_NO_ONE: tuple[_Place, str, Mapping[str, object]] = (_Place(""), "", MappingProxyType({}))
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
