"""What a product, an offer or the OpenGraph of a page states, by attribute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from prw_plugin_schemaorg.nodes import Graph, Leaf, Node, graph
from prw_plugin_schemaorg.settings import PROPERTY_PATHS, Reading
from prw_plugin_schemaorg.vocabulary import (
    AVAILABILITY,
    CURRENCY,
    GTIN,
    MPN,
    OFFER,
    OFFER_SELLER,
    OPENGRAPH,
    OPENGRAPH_AVAILABILITY,
    OPENGRAPH_PRICES,
    PRICE,
    PRODUCT,
    SKU,
    Paths,
)

Facts = Mapping[str, tuple[Leaf, ...]]
NO_FACTS: Facts = MappingProxyType({})
IDENTIFIERS = (GTIN, MPN, SKU)

_CURRENCY = ("priceCurrency",)
_RANGE = ("lowPrice", "highPrice", "offerCount")
_PIECES = frozenset(
    (
        *("c62", "h87", "ea", "pce", "nmb", "pc", "pcs", "piece", "pieces", "unit", "units"),
        *("item", "items", "count", "ct", "each", "st", "stk", "stück", "stücke"),
    )
)
"""Units under which a number is a count: UN/CEFACT's codes, and what shops write."""
_UNITS = ("unitText", "unitCode", "value.unitText", "value.unitCode")
_BARE = re.compile(r"[-+]?[\d.,\s]+")
_NOT_ASKED = ("listprice", "strikethroughprice", "msrp", "srp", "regularprice")


@dataclass(frozen=True, slots=True)
class Offer:
    """One offer; `is_range` where it stands for several, of which the page states no more than bounds."""

    facts: Facts = field(default_factory=lambda: NO_FACTS)
    seller: Leaf | None = None
    is_range: bool = False


def product_facts(of: Graph, node: Node, group: Node | None, reading: Reading) -> Facts:
    """A product's statements; a variant takes over what its group states, but never the group's numbers."""
    own = {**_properties(of, node, reading), **_table(of, node, PRODUCT, reading)}
    if group is None:
        return own
    shared = product_facts(of, group, None, reading).items()
    return {**{name: leaves for name, leaves in shared if name not in IDENTIFIERS}, **own}


def product_offers(
    of: Graph, node: Node, beside: tuple[Node, ...], reading: Reading
) -> Iterator[Offer]:
    """Every single offer of a product; an aggregate counts as its offers where it holds them."""
    for one in (*of.children(node, "offers"), *beside):
        held = of.children(one, "offers")
        for single in held or [one]:
            yield _offer(of, single, one, reading)


def opengraph_facts(node: Node, reading: Reading) -> Facts:
    """What the OpenGraph states of the article."""
    return _table(graph(()), node, OPENGRAPH, reading)


def opengraph_offers(node: Node, reading: Reading) -> Iterator[Offer]:
    """The one offer that OpenGraph can state; it has no word for the seller."""
    nothing = graph(())
    facts = dict(_table(nothing, node, {AVAILABILITY: OPENGRAPH_AVAILABILITY}, reading))
    for amount, currency in OPENGRAPH_PRICES:
        pair = _table(nothing, node, {PRICE: (amount,), CURRENCY: (currency,)}, reading)
        if PRICE in pair:
            facts.update(pair)
            break
    if facts:
        yield Offer(facts)


def _table(of: Graph, node: Node, paths: Paths, reading: Reading, prefix: str = "") -> Facts:
    """Read a table of paths: the first value that is stated, for GTINs each different one."""
    facts: dict[str, tuple[Leaf, ...]] = {}
    for attribute, names in paths.items():
        found = _found(of, node, names, reading, prefix)
        if found:
            different = {leaf.text: leaf for leaf in reversed(found)}
            facts[attribute] = tuple(different.values()) if attribute == GTIN else (found[0],)
    return facts


def _found(
    of: Graph, node: Node, names: tuple[str, ...], reading: Reading, prefix: str = "offers."
) -> list[Leaf]:
    kept = (name for name in names if prefix + name not in reading.exclusions)
    return [leaf for name in kept for leaf in of.leaves(node, name)]


def _properties(of: Graph, node: Node, reading: Reading) -> Facts:
    facts: dict[str, tuple[Leaf, ...]] = {}
    for path in PROPERTY_PATHS:
        for stated in of.children(node, path):
            attribute = reading.attribute_of(label(of, stated), path)
            value = property_value(of, stated)
            if attribute is not None and value is not None:
                facts.setdefault(attribute, (value,))
    return facts


def property_value(of: Graph, stated: Node) -> Leaf | None:
    """The value that a labelled property states by itself; None where there is none.

    A bare number whose unit stands apart (``unitText``, ``unitCode``) is none: alone it would be read as another one,
    500 g as 500 pieces. A count is one all the same.
    """
    value = next(iter((*of.leaves(stated, "value"), *of.leaves(stated, "value.value"))), None)
    if value is None or _BARE.fullmatch(value.text.strip()) is None:
        return value
    units = (leaf for path in _UNITS for leaf in of.leaves(stated, path))
    counts = all(unit.text.strip().rstrip(".").casefold() in _PIECES for unit in units)
    return value if counts else None


def label(of: Graph, stated: Node) -> str:
    """What a property is called: its name, else its scheme."""
    named = [*of.leaves(stated, "name"), *of.leaves(stated, "propertyID")]
    return " ".join(named[0].text.split()) if named else ""


def _offer(of: Graph, node: Node, around: Node, reading: Reading) -> Offer:
    price, is_range = _price(of, node, reading)
    facts = {**_table(of, node, OFFER, reading, "offers."), **price}
    currency = [leaf for one in (node, around) for leaf in _found(of, one, _CURRENCY, reading)]
    if PRICE in facts and currency:
        facts.setdefault(CURRENCY, (currency[0],))
    sellers = [leaf for one in (node, around) for leaf in _found(of, one, OFFER_SELLER, reading)]
    return Offer(facts, next(iter(sellers), None), is_range)


def _price(of: Graph, node: Node, reading: Reading) -> tuple[Facts, bool]:
    """What is asked for the offer, and whether the offer is a range without a price of its own."""
    asked = _found(of, node, ("price",), reading)
    if asked:
        return {PRICE: (asked[0],)}, False
    specified = _specified(of, node, reading)
    if specified:
        return specified, False
    low, high, count = (_found(of, node, (name,), reading) for name in _RANGE)
    is_one = (high and low and high[0].text == low[0].text) or (count and count[0].text == "1")
    if low and is_one:
        return {PRICE: (low[0],)}, False
    return NO_FACTS, bool(low or high or count)


def states_bounds(of: Graph, node: Node, reading: Reading) -> bool:
    """Whether the lowest price of an offer is a bound of several, and not what is asked for the piece."""
    return bool(of.children(node, "offers")) or _price(of, node, reading)[1]


def _specified(of: Graph, node: Node, reading: Reading) -> Facts:
    """The price and currency of the first price specification that is asked for the piece."""
    for one in of.children(node, "priceSpecification"):
        amount = _found(of, one, ("price",), reading, "offers.priceSpecification.")
        currency = _found(of, one, _CURRENCY, reading, "offers.priceSpecification.")
        if amount and _is_asked(of, one):
            return {PRICE: (amount[0],)} | ({CURRENCY: (currency[0],)} if currency else {})
    return NO_FACTS


def _is_asked(of: Graph, specification: Node) -> bool:
    """Not a list price that is crossed out, and not the price of a kilogram."""
    kinds = [leaf.text.lower() for leaf in of.leaves(specification, "priceType")]
    crossed_out = any(kind.endswith(_NOT_ASKED) for kind in kinds)
    return not crossed_out and not any(specification.all("referenceQuantity"))
