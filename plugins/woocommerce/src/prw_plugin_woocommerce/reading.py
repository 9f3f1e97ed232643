"""Records of one product: itself, or each of its variations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from prw_plugin_woocommerce import prices
from prw_sdk.adapter import Disposition, NotARecord
from prw_sdk.evidence import Capture, Part, Presence, Record
from prw_sdk.take import Leaf, Node, json_leaves, json_node, parsed, take

PRODUCT, VARIATIONS, SITE = "product", "variations", "site"

_EXTERNAL, _GROUPED = "external", "grouped"
_OF_ONE = ("images", "categories")
"""Lists whose first item is the one that a record states."""

Dispositions = Callable[[str], Disposition | None]


@dataclass(frozen=True, slots=True)
class Product:
    """What the parts of one capture state: the product, its variations, and the site's own leaves."""

    node: Node
    variations: tuple[Node, ...]
    site: tuple[Leaf, ...]

    def leaves(self) -> Iterator[Leaf]:
        """Every leaf of every part, under the names that the inventory declares."""
        for node in (self.node, *self.variations):
            yield from _renamed(node)
        yield from (leaf for _, leaf in _values(self.node))
        yield from self.site


def opened(capture: Capture) -> Product:
    """Take a capture apart; raises `NotARecord` where it holds no product."""
    if capture.presence is Presence.ABSENT:
        raise NotARecord("the shop says that this product is gone")
    parts = {part.role: part for part in capture.parts}
    if PRODUCT not in parts:
        raise NotARecord(f"the capture has no part {PRODUCT!r}")
    node = json_node(parts[PRODUCT])
    if node.text("id") is None:
        raise NotARecord("the part 'product' is no product of the Store API")
    site = tuple(_site(parts.get(SITE), node.text("type") == _EXTERNAL))
    return Product(node, tuple(_variations(parts.get(VARIATIONS))), site)


def records(product: Product, disposition: Dispositions) -> Iterator[Record]:
    """A record for each variation, or the one of a product without; raises `NotARecord` for a group of products."""
    kind, number = product.node.text("type"), product.node.text("id")
    if kind == _GROUPED:
        raise NotARecord("a group of products, each fetched as itself")
    if not product.variations and product.node.nodes("variations"):
        raise NotARecord("a product whose variations are not sold at present")
    if not product.variations:
        yield _record(product, product.node, "product", str(number), disposition)
        return
    by_number = {str(one.text("id")): one for one in reversed(product.variations)}
    for name, variation in reversed(by_number.items()):
        key = f"{number}#variation={name}"
        yield _record(product, variation, f"variation={name}", key, disposition)


def _record(
    product: Product, node: Node, record_id: str, key: str, disposition: Dispositions
) -> Record:
    """What the node states, completed by its product where it is a variation."""
    own = [*_first_of_lists(_renamed(node)), *_chosen(product, node)]
    known = {leaf.name for leaf in own if leaf.text}
    inherited = (
        leaf
        for leaf in _first_of_lists(_renamed(product.node))
        if leaf.name not in known and not leaf.name.startswith(("prices.", "price_html", "sku"))
    )
    more = () if node is product.node else inherited
    return take([*own, *more, *product.site], disposition).record(record_id, key)


def _renamed(node: Node) -> Iterator[Leaf]:
    """The leaves, price and stock under names that say what they are."""
    price = prices.asked(node)
    is_backordered = node.text("is_on_backorder") == "true"
    has_class = node.text("stock_availability.class") is not None
    for leaf in node.leaves:
        name = leaf.name
        if name == "price_html":
            is_asked = price is not None and price.name == name
            yield price if is_asked and price else replace(leaf, name="price_html.other")
        elif name == "prices.price" and (price is None or price.name != name):
            yield replace(leaf, name="prices.minor_units")
        elif name == "is_in_stock" and (is_backordered or has_class):
            yield replace(leaf, name="is_in_stock.backorder")
        else:
            yield leaf


def _first_of_lists(leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    seen: set[str] = set()
    for leaf in leaves:
        if leaf.name.startswith(_OF_ONE):
            if leaf.name in seen:
                continue
            seen.add(leaf.name)
        yield leaf


def _values(product: Node) -> Iterator[tuple[Node, Leaf]]:
    """Every value of an attribute, under the attribute's own name: ``attribute.Capacity``."""
    for attribute in product.nodes("attributes"):
        label = attribute.text("name")
        for term in attribute.nodes("terms"):
            leaf = term.leaf("name")
            if label is not None and leaf is not None:
                yield term, replace(leaf, name=f"attribute.{label}")


def _chosen(product: Product, node: Node) -> Iterator[Leaf]:
    """The values that hold of one record: all that do not vary, and of those that vary the variation's own."""
    if node is product.node:
        yield from (leaf for _, leaf in _values(product.node))
        return
    own = dict(_choices(product.node, str(node.text("id"))))
    varying = _varying(product.node)
    for term, leaf in _values(product.node):
        chosen = own.get(leaf.name.removeprefix("attribute."))
        is_chosen = chosen is not None and chosen in (term.text("slug"), term.text("name"))
        if is_chosen or leaf.name not in varying:
            yield leaf


def _varying(product: Node) -> frozenset[str]:
    return frozenset(
        f"attribute.{one.text('name')}"
        for one in product.nodes("attributes")
        if one.text("has_variations") == "true"
    )


def _choices(product: Node, number: str) -> Iterator[tuple[str, str]]:
    """What a variation stands for, as the product's own list of variations says."""
    for variation in product.nodes("variations"):
        if variation.text("id") == number:
            for choice in variation.nodes("attributes"):
                name, value = choice.text("name"), choice.text("value")
                if name is not None and value is not None:
                    yield name, value


def _variations(part: Part | None) -> Iterator[Node]:
    if part is None:
        return
    try:
        listed = parsed(part.text())
    except ValueError:
        raise NotARecord(f"the part {part.role!r} is no JSON") from None
    for index, one in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(one, Mapping) and one.get("id"):
            yield Node(one, tuple(json_leaves(one, part.role, f"/{index}")))


def _site(part: Part | None, is_sold_elsewhere: bool) -> Iterator[Leaf]:
    """The site's own leaves; its name is not the seller's where the product is sold elsewhere (rule 15)."""
    try:
        value = None if part is None else parsed(part.text())
    except ValueError:
        return
    for leaf in json_leaves(value, SITE, "", "site") if isinstance(value, Mapping) else ():
        is_publisher = is_sold_elsewhere and leaf.name == "site.name"
        yield replace(leaf, name="site.name.publisher") if is_publisher else leaf
