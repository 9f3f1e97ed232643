"""Leaves and nodes: values as a source states them, each with its name, its kind and its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prw_sdk.adapter import Disposition, Kind, Stated, Stored
from prw_sdk.evidence import Claim, Locator, Record

SELLER = "offer:seller"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value as stated, the dotted name it stands under (``offers.price``), its kind and its place.

    `text` is empty where there is no value: null, lists, objects and texts with nothing in them, and templates that a
    page's software left unfilled (``${price}``).
    """

    name: str
    kind: Kind
    text: str
    locator: Locator

    def claim(self, attribute: str) -> Claim:
        """This value as a claim of that attribute."""
        return Claim(attribute, self.text, self.locator)


@dataclass(frozen=True, slots=True)
class Node:
    """An object of a JSON document or of a page's JSON-LD, and every leaf in it.

    `name` is the dotted name that it stands under itself; names given to its methods are relative to that, while its
    leaves have their whole names, as the inventory declares them.
    """

    value: Mapping[str, object]
    leaves: tuple[Leaf, ...]
    name: str = ""
    children: tuple[Node, ...] = field(default=(), repr=False)

    def text(self, name: str) -> str | None:
        """The first value under that name that says something; None where there is none."""
        leaf = self.leaf(name)
        return None if leaf is None else leaf.text

    def leaf(self, name: str) -> Leaf | None:
        """The first leaf under that name that says something; None where there is none."""
        wanted = joined(self.name, name)
        return next((leaf for leaf in self.leaves if leaf.name == wanted and leaf.text), None)

    def nodes(self, name: str) -> tuple[Node, ...]:
        """The objects directly under that name, in document order."""
        wanted = joined(self.name, name)
        return tuple(_under(self.children, wanted))

    def beside(self, *names: str) -> tuple[Leaf, ...]:
        """The leaves but those that stand under these names: an article's own, without its offers', for one."""
        left = tuple(joined(self.name, name) for name in names)
        return tuple(leaf for leaf in self.leaves if not _is_within(leaf.name, left))


@dataclass(frozen=True, slots=True)
class Taken:
    """What an inventory made of leaves: claims, and the names left out on purpose and not known at all."""

    claims: tuple[Claim, ...] = ()
    excluded: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def record(self, record_id: str, listing_key: str) -> Record:
        """A record of these claims; the first ``offer:seller`` among them is its merchant (rule 15)."""
        merchant = next((claim for claim in self.claims if claim.attribute == SELLER), None)
        others = tuple(claim for claim in self.claims if claim.attribute != SELLER)
        return Record(record_id, listing_key, merchant, others)


def take(leaves: Iterable[Leaf], disposition: Callable[[str], Disposition | None]) -> Taken:
    """Claims of what is stored, and the names of the rest: what is excluded (or backlog), what is unknown.

    A stored leaf that says nothing makes no claim. Rule 14: every name lands in exactly one of the three.
    """
    known: dict[str, Disposition | None] = {}
    claims: dict[Claim, None] = {}
    for leaf in leaves:
        if leaf.name not in known:
            known[leaf.name] = disposition(leaf.name)
        how = known[leaf.name]
        if isinstance(how, Stored) and leaf.text.strip():
            claims[leaf.claim(how.target)] = None
    left = [name for name, how in known.items() if not isinstance(how, Stored)]
    return Taken(
        tuple(claims),
        tuple(name for name in left if known[name] is not None),
        tuple(name for name in left if known[name] is None),
    )


def stated(leaves: Iterable[Leaf]) -> tuple[Stated, ...]:
    """What an adapter's `stated` answers for these leaves: each name with each kind once, in document order."""
    return tuple(dict.fromkeys(Stated(leaf.name, leaf.kind) for leaf in leaves))


def _under(nodes: Iterable[Node], name: str) -> Iterator[Node]:
    for node in nodes:
        if node.name == name:
            yield node
        elif name.startswith(f"{node.name}."):
            yield from _under(node.children, name)


def _is_within(name: str, outer: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in outer)


def joined(name: str, member: str) -> str:
    """The dotted name of a member."""
    return f"{name}.{member}" if name and member else name or member
