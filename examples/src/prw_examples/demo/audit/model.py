"""What the audit finds in the databases, and the figures that follow from it. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prw_examples.street.truth import Pair, TrueListing, Truth

CONTRADICTING = (
    "core:brand",
    "core:mpn",
    "core:condition",
    "core:pack_quantity",
    "storage:capacity",
    "storage:heatsink",
)
"""Attributes in which two articles that differ are never one (capacity, condition, pack, model suffix …)."""

KEYS = {
    "gtin": ("core:gtin", "core:condition", "core:pack_quantity"),
    "brand_mpn": ("core:brand", "core:mpn", "core:condition", "core:pack_quantity"),
}
"""The two whole keys, by what they are made of. Written here anew, so that a fault in the resolver's rules shows."""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A normalised value of a record: canonical text, its unit, and what it rests on."""

    value: str
    unit: str
    basis: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The newest reading of a listing, and what both databases made of it.

    `items` are the items that its active mappings name, `deciders` the kinds of who decided these, and `public`
    the items under which the product shows it.
    """

    source_id: str
    listing_key: str
    page: str
    sku: tuple[str, ...] = ()
    seller: str = ""
    values: Mapping[str, Said] = field(default_factory=dict)
    ambiguous: frozenset[str] = frozenset()
    items: frozenset[str] = frozenset()
    deciders: frozenset[str] = frozenset()
    public: frozenset[str] = frozenset()
    has_open_case: bool = False

    @property
    def by_rule(self) -> bool:
        """Whether a rule accepted it, and nobody is asked about it now."""
        return self.deciders == {"rule"} and not self.has_open_case


@dataclass(frozen=True, slots=True)
class Item:
    """An accepted item; `trusted` says whether a source that may introduce items brought it in."""

    item_id: str
    status: str
    trusted: bool
    attributes: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """What became of the truth file's pairs: how many were decided on, and how many wrongly."""

    same: int
    different: int
    merged_near_misses: int
    split_same: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run; the six from `gaps` to `missed_accepts`, `pairs` aside, are 0 where all is well."""

    fetched: int
    kept: int
    submitted: int
    accepted: int
    in_review: int
    public_items: int
    positions: int
    gaps: int
    duplicates: int
    pairs: Pairs
    untraceable_facts: int
    missed_accepts: int

    def as_json(self) -> dict[str, object]:
        """The figures by the names that scripts read."""
        names = (
            *("fetched", "kept", "submitted", "accepted", "in_review", "public_items"),
            *("positions", "gaps", "duplicates"),
        )
        return {name: getattr(self, name) for name in names} | {
            "merged_near_misses": self.pairs.merged_near_misses,
            "split_same": self.pairs.split_same,
            "untraceable_facts": self.untraceable_facts,
            "missed_accepts": self.missed_accepts,
            "pairs_tested": {"same": self.pairs.same, "different": self.pairs.different},
        }

    @property
    def faults(self) -> dict[str, int]:
        """Those of the figures that ought to be 0 and are not."""
        names = ("gaps", "duplicates", "untraceable_facts", "missed_accepts")
        found = {name: int(getattr(self, name)) for name in names} | {
            "merged_near_misses": self.pairs.merged_near_misses,
            "split_same": self.pairs.split_same,
        }
        return {name: number for name, number in found.items() if number}


def judge_pairs(listings: Sequence[Listing], truth: Truth) -> Pairs:
    """Hold the truth file's pairs against the catalogue.

    A pair counts as decided on where both of its listings have an active mapping.
    """
    found = match_truth(listings, truth)
    same, different = _known(truth.same, found), _known(truth.different, found)
    return Pairs(
        same=_decided(same),
        different=_decided(different),
        merged_near_misses=sum(_share_an_item(a, b) for a, b in different),
        split_same=sum(_are_public_apart(a, b) for a, b in same),
    )


def match_truth(listings: Sequence[Listing], truth: Truth) -> dict[str, Listing]:
    """The listings by the truth file's ids; those that it does not tell apart, or not have, are left out."""
    pages: dict[tuple[str, str], list[TrueListing]] = defaultdict(list)
    for listing in truth.listings:
        pages[listing.source, listing.url].append(listing)
    matched = ((_match(one, pages[one.source_id, one.page]), one) for one in listings)
    return {named: one for named, one in matched if named is not None}


def _match(listing: Listing, candidates: list[TrueListing]) -> str | None:
    for fits in (_has_sku(listing), _has_seller(listing)):
        candidates = [one for one in candidates if fits(one)] or candidates
    return candidates[0].id if len(candidates) == 1 else None


def _has_sku(listing: Listing) -> Callable[[TrueListing], bool]:
    return lambda one: one.sku in listing.sku


def _has_seller(listing: Listing) -> Callable[[TrueListing], bool]:
    return lambda one: one.seller.casefold() == listing.seller.casefold()


def _known(pairs: Sequence[Pair], found: Mapping[str, Listing]) -> list[tuple[Listing, Listing]]:
    return [(found[one.a], found[one.b]) for one in pairs if one.a in found and one.b in found]


def _decided(pairs: Sequence[tuple[Listing, Listing]]) -> int:
    return sum(bool(a.items) and bool(b.items) for a, b in pairs)


def _share_an_item(a: Listing, b: Listing) -> bool:
    return bool(a.items & b.items or a.public & b.public)


def _are_public_apart(a: Listing, b: Listing) -> bool:
    asked = a.has_open_case or b.has_open_case
    return bool(a.public) and bool(b.public) and a.public != b.public and not asked


def missed_accepts(listings: Sequence[Listing], items: Mapping[str, Item]) -> tuple[Listing, ...]:
    """The records that a rule had to accept and did not.

    Such a record states a whole key that another listing of an active item states too, the item was introduced by a
    trusted source, no key leads to a second item, and the record differs from it in none of `CONTRADICTING`.
    """
    holders: dict[Key, Counter[str]] = defaultdict(Counter)
    for listing in listings:
        for key in whole_keys(listing):
            holders[key].update(listing.items)
    return tuple(one for one in listings if not one.by_rule and _fits(one, holders, items))


def whole_keys(listing: Listing) -> frozenset[Key]:
    """The keys that a listing states as a whole. A hint in a title forbids the default, and is no statement."""
    return frozenset(key for name in KEYS for key in _key(name, listing))


def _key(name: str, listing: Listing) -> Iterator[Key]:
    held = [listing.values.get(attribute) for attribute in KEYS[name]]
    said = [one for one in held if one is not None and one.basis != "hint"]
    if len(said) == len(held):
        yield (name, *(one.value for one in said))


def _fits(listing: Listing, holders: Mapping[Key, Counter[str]], items: Mapping[str, Item]) -> bool:
    found: Counter[str] = Counter()
    for key in whole_keys(listing):
        found |= holders[key] - Counter(listing.items)
    if len(found) != 1:
        return False
    item = items.get(next(iter(found)))
    sound = item is not None and item.trusted and item.status == "active"
    return sound and item is not None and not contradictions(listing, item)


def contradictions(listing: Listing, item: Item) -> tuple[str, ...]:
    """In which attributes a record differs from an item, or from itself."""
    torn = (name for name in (*CONTRADICTING, "core:gtin") if name in listing.ambiguous)
    differing = (
        name
        for name in CONTRADICTING
        if _differs(listing.values.get(name), item.attributes.get(name))
    )
    return (*torn, *differing)


def _differs(ours: Said | None, theirs: tuple[str, str] | None) -> bool:
    return ours is not None and theirs is not None and (ours.value, ours.unit) != theirs
