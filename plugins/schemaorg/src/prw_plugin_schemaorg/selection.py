"""Which products of a markup the page is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prw_plugin_schemaorg.nodes import Graph, Leaf, Node
from prw_plugin_schemaorg.page import Page

PRODUCT_TYPES = frozenset(
    {
        *("Product", "ProductModel", "IndividualProduct", "SomeProducts", "ProductGroup"),
        *("ProductCollection", "Vehicle", "Car"),
    }
)
OFFER_TYPES = frozenset({"Offer", "AggregateOffer"})
LIST_TYPES = frozenset({"ItemList", "OfferCatalog", "CollectionPage", "SearchResultsPage"})

_SUBSTANCE = frozenset(
    {"name", "sku", "mpn", "offers", "gtin", "gtin8", "gtin12", "gtin13", "gtin14", "isbn"}
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A product node, the group whose variant it is, and its offers that do not stand in it."""

    node: Node
    group: Node | None = None
    offers: tuple[Node, ...] = ()
    varies: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """The products that the page is about; `is_list` where the markup lists several that are not its own."""

    candidates: tuple[Candidate, ...] = ()
    is_list: bool = False


def choose(graph: Graph, page: Page) -> Choice:
    """One product, the variants of one, or none.

    Of several products those are meant whose address is the page's own. Where none has an address, JSON-LD products
    with numbers of their own are variants; everything else is a list.
    """
    found = _named(_adopted(tuple(_candidates(graph)), graph), graph)
    own = tuple(one for one in found if _is_here(one, graph, page))
    if len(found) > 1 and own:
        found = own
    elif len(found) > 1 and not _are_variants(found, graph):
        return Choice(is_list=True)
    expanded = tuple(variant for one in found for variant in _variants(one, graph, len(found) > 1))
    return Choice(expanded, not expanded and _has_list(graph))


def _candidates(graph: Graph) -> Iterator[Candidate]:
    seen: set[int] = set()
    for root in graph.roots:
        for candidate in _of_root(root, graph):
            if id(candidate.node) not in seen and _has_substance(candidate.node):
                seen.add(id(candidate.node))
                yield candidate


def _of_root(root: Node, graph: Graph) -> Iterator[Candidate]:
    if root.types & PRODUCT_TYPES:
        yield Candidate(root)
    elif root.types & OFFER_TYPES:
        yield from (Candidate(one, offers=(root,)) for one in graph.children(root, "itemOffered"))
    else:
        main = graph.children(root, "mainEntity")
        yield from (Candidate(one) for one in main if one.types & PRODUCT_TYPES)


def _has_substance(node: Node) -> bool:
    stated = (name for name, value in node.members if isinstance(value, Leaf) or name == "offers")
    return any(name in _SUBSTANCE for name in stated) or "ProductGroup" in node.types


def _adopted(found: tuple[Candidate, ...], graph: Graph) -> tuple[Candidate, ...]:
    """Give a lone product without offers those that stand beside it; drop variants that a group holds."""
    held = {id(node) for one in found for node in graph.children(one.node, "hasVariant")}
    found = tuple(one for one in found if id(one.node) not in held)
    if len(found) != 1 or found[0].offers or any(found[0].node.all("offers")):
        return found
    loose = (
        one for one in graph.roots if one.types & OFFER_TYPES and not any(one.all("itemOffered"))
    )
    return (Candidate(found[0].node, offers=tuple(loose)),)


def _named(found: tuple[Candidate, ...], graph: Graph) -> tuple[Candidate, ...]:
    """Beside products with a name, those without are scraps of markup."""
    named = tuple(one for one in found if graph.leaves(one.node, "name"))
    return named or found


def _is_here(candidate: Candidate, graph: Graph, page: Page) -> bool:
    stated = [leaf.text for leaf in graph.leaves(candidate.node, "url")]
    identity = candidate.node.identity or ""
    addresses = stated or ([identity] if identity.startswith("http") else [])
    return any(page.is_here(address) for address in addresses)


def _are_variants(found: Iterable[Candidate], graph: Graph) -> bool:
    numbers = [_number(one.node, graph) for one in found]
    nowhere = all(not graph.leaves(one.node, "url") for one in found)
    return nowhere and None not in numbers and len(set(numbers)) == len(numbers)


def _number(node: Node, graph: Graph) -> str | None:
    """What tells a variant from others; microdata never does, as lists of it carry numbers and no address too."""
    if node.markup.value != "json-ld":
        return None
    numbers = (
        leaf.text for name in ("sku", "mpn", "gtin13", "gtin") for leaf in graph.leaves(node, name)
    )
    return next(numbers, None)


def _variants(candidate: Candidate, graph: Graph, is_one_of_many: bool) -> Iterator[Candidate]:
    held = [node for node in graph.children(candidate.node, "hasVariant") if _has_substance(node)]
    for node in held:
        yield Candidate(node, group=candidate.node, varies=True)
    if not held:
        group = next(iter(graph.children(candidate.node, "isVariantOf")), None)
        yield Candidate(candidate.node, group, candidate.offers, is_one_of_many)


def _has_list(graph: Graph) -> bool:
    return any(root.types & LIST_TYPES for root in graph.roots)
