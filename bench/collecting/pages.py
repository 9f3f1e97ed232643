"""The pages that every side crawls, and what each side reads in one."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from parsel import Selector

SMALLEST, LARGEST = 15_000, 30_000
_WORDS = ("bolt", "lumen", "grade", "steel", "cable", "warranty", "delivery", "watt", "panel")


def paths(count: int) -> list[str]:
    """The paths of the first `count` pages."""
    return [f"/p/{number}" for number in range(count)]


def rows(seed: int = 7) -> list[bytes]:
    """Filler rows as shops have them, of which pages are put together."""
    choice = Random(seed)  # noqa: S311 - filler text
    return [
        (
            f'<li class="related"><a href="/p/{choice.randrange(9999)}"><img src="/i/{row}.webp" alt="">'
            f"<span>{' '.join(choice.choices(_WORDS, k=12))}</span></a></li>\n"
        ).encode()
        for row in range(200)
    ]


def page(number: int, filler: list[bytes]) -> bytes:
    """The HTML of a product, 15 to 30 kB, with its JSON-LD in the head."""
    product = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": f"Part {number}",
        "sku": f"LP-{number:06}",
        "mpn": f"M{number}",
        "offers": {
            "@type": "Offer",
            "price": f"{10 + number % 90}.95",
            "priceCurrency": "EUR",
            "seller": {"@type": "Organization", "name": f"Seller {number % 7}"},
        },
    }
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Part {number}</title>'
        f'<script type="application/ld+json">{json.dumps(product)}</script></head><body><ul>'
    ).encode()
    size = SMALLEST + (number * 7919) % (LARGEST - SMALLEST)
    pieces, length, at = [head], len(head), number
    while length < size:
        piece = filler[at % len(filler)]
        pieces.append(piece)
        length += len(piece)
        at += 1
    return b"".join([*pieces, b"</ul></body></html>"])


def product(document: Selector) -> dict[str, Any]:
    """The product of a page: the parsing that every side does."""
    for text in document.xpath('//script[@type="application/ld+json"]/text()').getall():
        found = json.loads(text)
        if found.get("@type") == "Product":
            offer = found["offers"]
            return {
                "name": found["name"],
                "sku": found["sku"],
                "price": offer["price"],
                "currency": offer["priceCurrency"],
                "seller": offer["seller"]["name"],
            }
    raise ValueError("no product")
