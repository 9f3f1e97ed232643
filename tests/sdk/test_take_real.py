"""Real pages and answers: every leaf that is taken of them leads back, and what is scrubbed is found no more."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from prw_sdk.evidence import Part
from prw_sdk.locate import fold, resolve
from prw_sdk.take import Leaf, json_leaves, jsonld, page_leaves, parsed
from prw_sdk.testing.scrub import findings, scrubbed
from tests.sdk.test_scrub import captured
from tests.sdk.test_take import part


def samples(folder: str, pattern: str) -> list[Path]:
    """The real files of one kind."""
    root = os.environ.get("PRW_SAMPLES")
    if not root:
        pytest.skip("PRW_SAMPLES does not name the real material")
    found = sorted((Path(root) / folder).glob(pattern))
    assert found
    return found


def lost(page: Part, leaves: list[Leaf]) -> list[str]:
    """Leaves whose locator leads elsewhere."""
    return [
        leaf.name
        for leaf in leaves
        if leaf.text and fold(resolve(page, leaf.locator.selector) or "") != fold(leaf.text)
    ]


def test_every_leaf_of_a_real_page_leads_back() -> None:
    """JSON-LD as shops write it, and what stands in titles and meta elements."""
    taken = 0
    for path in samples("pages", "*.html"):
        page = part(path.read_text("utf-8", errors="replace"))
        leaves = [leaf for node in jsonld(page) for leaf in node.leaves]
        leaves += page_leaves(page, "title", "title")
        leaves += page_leaves(page, "meta", "meta[property]", "content")
        assert lost(page, leaves) == [], path.name
        taken += len(leaves)
    assert taken > 200


def test_leaves_of_a_real_answer_lead_back() -> None:
    """Thousands of listings in one answer, of which some are looked at."""
    for path in samples("ebay", "*.json"):
        page = part(path.read_text("utf-8"), "application/json")
        leaves = list(json_leaves(parsed(page.text()), "page"))
        some = random.Random(7).sample(leaves, min(20, len(leaves)))
        assert some
        assert lost(page, some) == [], path.name


def test_what_real_pages_hold_of_visitors_is_taken_out() -> None:
    """Session ids, tokens of forms, addresses of mailboxes; and the page is the same page still."""
    found = 0
    for path in samples("pages", "*.html"):
        page = part(path.read_text("utf-8", errors="replace"))
        capture = captured(page)
        found += len(findings(capture))
        clean = scrubbed(capture)
        assert findings(clean) == (), path.name
        assert len(jsonld(clean.parts[0])) == len(jsonld(page))
    assert found > 20
