"""Records of one product: one for each variant, of what the product, the embed and the shop's own entry state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from prw_sdk.adapter import Disposition, NotARecord, Stored
from prw_sdk.evidence import Capture, Part, Presence, Record
from prw_sdk.take import Leaf, Node, json_leaves, json_node, parsed, take

PRODUCT, EMBED, SHOP = "product", "embed", "shop"

_GTIN_LENGTHS = (8, 12, 13, 14)
_CURRENCY = "offer:currency"

Dispositions = Callable[[str], Disposition | None]


@dataclass(frozen=True, slots=True)
class Product:
    """What the parts of one capture state: the product's own node, and leaves of the others.

    `offers` has the leaves of the embed's offer of each variant, by the variant's number.
    """

    node: Node
    options: tuple[str | None, ...]
    around: tuple[Leaf, ...]
    offers: Mapping[str, tuple[Leaf, ...]]

    def leaves(self) -> Iterator[Leaf]:
        """Every leaf of every part, under the names that the inventory declares."""
        yield from _renamed(self.node.beside("variants"), ())
        for variant in self.node.nodes("variants"):
            yield from _renamed(variant.leaves, self.options)
        if not self.node.nodes("variants"):
            yield from (leaf for leaf in self.node.leaves if leaf.name == "variants")
        yield from self.around
        for leaves in self.offers.values():
            yield from leaves


def opened(capture: Capture) -> Product:
    """Take a capture apart; raises `NotARecord` where it holds no product."""
    if capture.presence is Presence.ABSENT:
        raise NotARecord("the shop says that this product is gone")
    parts = {part.role: part for part in capture.parts}
    if PRODUCT not in parts:
        raise NotARecord(f"the capture has no part {PRODUCT!r}")
    node = json_node(parts[PRODUCT], "/product")
    around = [*_of(parts.get(EMBED), EMBED), *_of(parts.get(SHOP), SHOP)]
    return Product(node, tuple(_option_names(node)), tuple(around), dict(_offers(parts.get(EMBED))))


def records(product: Product, disposition: Dispositions) -> Iterator[Record]:
    """A record for each variant; raises `NotARecord` where there is none."""
    number = product.node.text("id")
    variants = [one for one in product.node.nodes("variants") if one.text("id")]
    if number is None or not variants:
        raise NotARecord("a product without variants, which has nothing to sell")
    own = tuple(_renamed(product.node.beside("variants"), ()))
    for variant in {str(one.text("id")): one for one in reversed(variants)}.values().__reversed__():
        name = str(variant.text("id"))
        leaves = (
            *own,
            *_renamed(variant.leaves, product.options),
            *product.offers.get(name, ()),
            *product.around,
        )
        taken = take(_in_one_currency(leaves, disposition), disposition)
        yield taken.record(f"variant={name}", f"{number}#variant={name}")


def _option_names(node: Node) -> Iterator[str | None]:
    """The names of the options by position: objects today, plain texts in some older shapes."""
    options = node.value.get("options")
    for one in options if isinstance(options, list) else ():
        name = one.get("name") if isinstance(one, Mapping) else one
        yield name if isinstance(name, str) and name.strip() else None


def _renamed(leaves: Iterable[Leaf], options: tuple[str | None, ...]) -> Iterator[Leaf]:
    """Leaves whose name alone does not say what they are, under one that does."""
    for leaf in leaves:
        name = leaf.name
        if name in ("variants.option1", "variants.option2", "variants.option3"):
            label = dict(enumerate(options, start=1)).get(int(name[-1]))
            name = name if label is None else f"option.{label}"
        elif name == "variants.title" and leaf.text == "Default Title":
            name = "variants.title.default"
        elif name == "variants.barcode" and leaf.text and not is_gtin(leaf.text):
            name = "variants.barcode.other"
        if name.startswith("option.") and leaf.text == "Default Title":
            name = "variants.title.default"
        yield replace(leaf, name=name)


def _of(part: Part | None, name: str) -> Iterator[Leaf]:
    """The leaves of a part beside the product's, but for the embed's offers; a broken part states nothing."""
    value = _value(part)
    if part is not None and isinstance(value, Mapping):
        for leaf in json_leaves(value, part.role, "", name):
            if not leaf.name.startswith("embed.offers."):
                yield leaf


def _offers(part: Part | None) -> Iterator[tuple[str, tuple[Leaf, ...]]]:
    value = _value(part)
    offers = value.get("offers") if isinstance(value, Mapping) else None
    for index, offer in enumerate(offers if isinstance(offers, list) else ()):
        if part is not None and isinstance(offer, Mapping):
            leaves = tuple(json_leaves(offer, part.role, f"/offers/{index}", "embed.offers"))
            yield str(offer.get("offer_id", index)), leaves


def _value(part: Part | None) -> object:
    try:
        return None if part is None else parsed(part.text())
    except ValueError:
        return None


def _in_one_currency(leaves: Iterable[Leaf], disposition: Dispositions) -> Iterator[Leaf]:
    """All leaves, of currencies the first alone: the variant's own, else the embed's, else the shop's.

    A shop's own currency is not the one that a market's prices are in.
    """
    known = False
    for leaf in leaves:
        found = disposition(leaf.name)
        is_currency = isinstance(found, Stored) and found.target == _CURRENCY and leaf.text
        if is_currency and known:
            continue
        known = known or bool(is_currency)
        yield leaf


def is_gtin(text: str) -> bool:
    """Whether a text is a GTIN as it stands: 8, 12, 13 or 14 digits, of which the last one checks the others."""
    if len(text) not in _GTIN_LENGTHS or not (text.isascii() and text.isdigit()):
        return False
    weighed = (int(digit) * (3, 1)[at % 2] for at, digit in enumerate(reversed(text[:-1])))
    return (10 - sum(weighed) % 10) % 10 == int(text[-1])
