"""The audit as a whole: read both databases and the stored bytes, and say what is found."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from prw_examples.demo.audit.evidence import Vault, untraceable
from prw_examples.demo.audit.model import Figures, judge_pairs, missed_accepts
from prw_examples.demo.audit.store import Books
from prw_examples.street.truth import Truth


@dataclass(frozen=True, slots=True)
class Collected:
    """What the collector tells of itself: answers of sources, and captures in its spool."""

    fetched: int
    kept: int


async def audit(books: Books, objects: Path, truth: Truth, collected: Collected) -> Figures:
    """The figures of the catalogue as it stands; `objects` is the object store's folder."""
    resolver = await books.resolver_standing()
    product = await books.product_standing()
    listings = await books.listings(product)
    return Figures(
        fetched=collected.fetched,
        kept=collected.kept,
        submitted=resolver.submitted,
        accepted=resolver.accepted,
        in_review=resolver.in_review,
        public_items=await books.public_items(product),
        positions=resolver.position,
        gaps=await books.gaps(resolver, product),
        duplicates=await books.duplicates(),
        pairs=judge_pairs(listings, truth),
        untraceable_facts=await _untraceable(books, objects),
        missed_accepts=len(missed_accepts(listings, await books.items())),
    )


async def _untraceable(books: Books, objects: Path) -> int:
    vault = Vault(objects, books.scope.tenant_id, await books.documents())
    facts = await books.facts()
    return len(await asyncio.to_thread(untraceable, facts, vault))
