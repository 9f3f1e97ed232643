"""What every markup is read into: nodes with members, and leaves that know where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from prw_sdk.adapter import Kind
from prw_sdk.evidence import Selector

_NO_DATABASE_TEXT = re.compile("[\x00\ud800-\udfff]")


class Markup(StrEnum):
    """How a page marks up its data; in the order of precedence between equally complete products."""

    JSON_LD = "json-ld"
    MICRODATA = "microdata"
    OPENGRAPH = "opengraph"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value as stated (entities of the document decoded), and where it stands in the page."""

    text: str
    selector: Selector
    kind: Kind = Kind.TEXT


Silent = tuple[tuple[str, Kind], ...]
"""Names that stand without a value: null, or with nothing in them."""


@dataclass(frozen=True, slots=True)
class Node:
    """An item of the markup: its types and member names without their vocabulary's address.

    `silent` are the members that state nothing; no reader looks at them.
    """

    markup: Markup
    types: frozenset[str] = frozenset()
    identity: str | None = None
    members: tuple[tuple[str, Leaf | Node], ...] = ()
    silent: Silent = ()
    _by_name: dict[str, list[Leaf | Node]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name, value in self.members:
            self._by_name.setdefault(name, []).append(value)

    def all(self, name: str) -> Iterator[Leaf | Node]:
        """Every value under that name, in document order."""
        return iter(self._by_name.get(name, ()))

    def nodes(self) -> Iterator[Node]:
        """The nodes directly under this one."""
        return (value for _, value in self.members if isinstance(value, Node))


@dataclass(frozen=True, slots=True)
class Graph:
    """All nodes of one markup: those that stand by themselves, and those that others refer to by identity."""

    roots: tuple[Node, ...]
    by_identity: Mapping[str, Node]

    def real(self, value: Leaf | Node) -> Leaf | Node:
        """The node itself where `value` only refers to it."""
        if isinstance(value, Leaf) or value.members or value.identity is None:
            return value
        return self.by_identity.get(value.identity, value)

    def values(self, node: Node, path: str) -> Iterator[Leaf | Node]:
        """What stands under a dotted path, references followed."""
        name, _, rest = path.partition(".")
        for value in map(self.real, node.all(name)):
            if not rest:
                yield value
            elif isinstance(value, Node):
                yield from self.values(value, rest)

    def leaves(self, node: Node, path: str) -> list[Leaf]:
        """The leaves under a dotted path."""
        return [value for value in self.values(node, path) if isinstance(value, Leaf)]

    def children(self, node: Node, path: str) -> list[Node]:
        """The nodes under a dotted path."""
        return [value for value in self.values(node, path) if isinstance(value, Node)]


def graph(roots: Iterable[Node]) -> Graph:
    """Gather nodes; of several with one identity the fullest is meant."""
    kept = tuple(roots)
    known: dict[str, Node] = {}
    for node in _every(kept):
        if node.identity and len(node.members) > len(known.get(node.identity, _EMPTY).members):
            known[node.identity] = node
    return Graph(kept, MappingProxyType(known))


def _every(roots: Iterable[Node]) -> Iterator[Node]:
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.nodes())


def local_name(name: str) -> str:
    """``Product`` for ``http://schema.org/Product`` and ``schema:Product``."""
    return re.split(r"[/#:]", name.strip())[-1]


def clean(text: str) -> str:
    """Text without what no database keeps as text: NUL and lone surrogates become U+FFFD."""
    return _NO_DATABASE_TEXT.sub("\ufffd", text)


_EMPTY = Node(Markup.JSON_LD)
