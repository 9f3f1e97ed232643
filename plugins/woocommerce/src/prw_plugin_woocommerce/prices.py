"""The price that is asked, as an amount that reads as what it is.

The Store API states prices in the currency's minor unit: ``"1999"`` with ``currency_minor_unit`` 2 is 19.99. A claim is
what stands there, and 1999 read without its unit is a hundred times the price. The same entry also writes the amount
out, in `price_html` for people; the amount there that has the digits of `price` is the one that is claimed, with the
place where it stands. Where the minor unit is 0 the number itself is the amount.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from prw_sdk.adapter import Kind
from prw_sdk.evidence import Locator, Selector, SelectorType
from prw_sdk.take import Leaf, Node

AMOUNTS = '//*[contains(concat(" ",@class," ")," woocommerce-Price-amount ")]'

_NOT_DIGITS = re.compile(r"[^0-9]+")
_LONGEST = 20_000


def asked(product: Node) -> Leaf | None:
    """The price as a leaf named after where it stands; None where no single amount is written."""
    price, unit = product.leaf("prices.price"), product.text("prices.currency_minor_unit")
    if price is None or unit is None or product.text("prices.price_range.max_amount") is not None:
        return None
    if unit == "0":
        return price
    html = product.leaf("price_html")
    if html is None or not unit.isdecimal() or len(html.text) > _LONGEST:
        return None
    for text, path in _amounts(html.text):
        if _is_amount(text, price.text, int(unit)):
            return Leaf("price_html", Kind.TEXT, text, _within(html.locator, path))
    return None


def _amounts(html: str) -> Iterator[tuple[str, str]]:
    """The amounts that are marked as such, then the whole text."""
    try:
        tree = etree.fromstring(html.encode("utf-8", errors="replace"), _parser())
    except etree.XMLSyntaxError:
        return
    found = [] if tree is None else [*_elements(tree, AMOUNTS), tree]
    for number, element in enumerate(found, start=1):
        path = f"({AMOUNTS})[{number}]" if number < len(found) else "/*"
        yield str(element.xpath("string()")).strip(), path


def _parser() -> etree.HTMLParser:
    return etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)


def _elements(tree: etree._Element, path: str) -> list[etree._Element]:
    found = tree.xpath(path)
    return (
        [one for one in found if isinstance(one, etree._Element)] if isinstance(found, list) else []
    )


def _is_amount(text: str, price: str, unit: int) -> bool:
    """Whether a text writes out that many minor units; shops may leave out decimals that are zero."""
    digits = _NOT_DIGITS.sub("", text).lstrip("0")
    wanted = price.lstrip("0")
    return bool(digits) and wanted in (digits, digits + "0" * unit)


def _within(locator: Locator, path: str) -> Locator:
    inner = Selector(SelectorType.XPATH, path)
    return Locator(
        locator.part_role,
        Selector(SelectorType.JSON_POINTER, locator.selector.value, refined_by=inner),
    )
