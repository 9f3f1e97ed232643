"""Recorded captures whose bytes were damaged: what is still claimed is found again where it is said to stand."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from prw_plugin_merchant_feed import MerchantFeed, markup
from prw_plugin_merchant_feed.words import Names
from prw_sdk.adapter import Adapter
from prw_sdk.evidence import Capture
from prw_sdk.locate import leads_back
from prw_sdk.testing import reading
from tests.plugins.shipped import ADAPTERS, recorded

SEEDS = 25
SIGNS = b"<>&\"'/=;\x00\xff !-[]?"


def damaged(body: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, cut out, put in, or repeated elsewhere."""
    for _ in range(chance.randint(1, 12)):
        at, other = chance.randrange(len(body) + 1), chance.randrange(len(body) + 1)
        before, after = body[:at], body[at:]
        body = chance.choice(
            [
                before + chance.randbytes(1) + after[1:],
                before + after[chance.randint(1, 40) :],
                before + bytes(chance.choices(SIGNS, k=chance.randint(1, 4))) + after,
                before + body[other : other + chance.randint(1, 60)] + after,
            ]
        )
    return body


def damaged_captures(adapter: type[Adapter]) -> Iterator[tuple[str, Capture]]:
    """Each recorded capture with its parts damaged, once for every seed."""
    for fixture in recorded(adapter):
        for seed in range(SEEDS):
            chance = random.Random(f"{fixture.case} {seed}")
            parts = []
            for part in fixture.capture.parts:
                body = damaged(part.body, chance)
                sha256 = hashlib.sha256(body).hexdigest()
                parts.append(replace(part, body=body, sha256=sha256))
            yield f"{fixture.case} {seed}", replace(fixture.capture, parts=tuple(parts))


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_every_claim_made_of_damaged_bytes_leads_back(adapter: type[Adapter]) -> None:
    """A claim is found at its locator, whatever a parser mends; else it is not made."""
    lost, found = [], 0
    for name, capture in damaged_captures(adapter):
        for record in reading.read(adapter(), capture)[0]:
            for claim in reading.claims(record):
                found += 1
                if not leads_back(claim, capture):
                    lost.append((name, claim.attribute, claim.value_as_stated))
    assert lost == []
    assert found


def test_a_long_feed_that_breaks_late_is_read_on_and_no_item_twice() -> None:
    """What stands behind the break, pieces of the file later, is read in its place once."""
    item = "<item><id>{0}</id><title>Drive {0}</title><price>1.00 EUR</price>{1}</item>"
    text = "".join(item.format(n, "</b>" if n == 1500 else "<b> </b>") for n in range(2000))
    feed = next(one.capture for one in recorded(MerchantFeed) if one.case == "rss")
    body = f"<rss><channel><title>Shop</title>{text}</channel></rss>".encode()
    (part,) = feed.parts
    broken = replace(part, body=body, sha256=hashlib.sha256(body).hexdigest())
    capture = replace(feed, parts=(broken,))
    assert sum(not one.is_channel for one in markup.items(broken, Names({}), None)) == 2000
    records = reading.read(MerchantFeed(), capture)[0]
    titles = [
        claim.value_as_stated
        for one in records
        for claim in one.claims
        if claim.attribute == "core:title"
    ]
    assert titles == [f"Drive {n}" for n in range(2000)]
    assert all(leads_back(claim, capture) for one in records[::100] for claim in one.claims)
