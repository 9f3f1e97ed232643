"""What is true of the street: which listings are the same product, which must never be.

All of it follows from the catalogue's definition:

- Two listings are *the same* when they offer the same canonical product, whatever their pages say.
- Two listings are *a near miss* when their products differ but are of one brand and family, and they
  differ in one trait only (capacity, heatsink, condition, pack) or show the same GTIN or part number,
  be it a stale one.
- A listing is *accepted* when its page states a whole identity key, (GTIN, condition, pack) or
  (brand, MPN, condition, pack), that leads to an item which a trusted shop introduced, and nothing
  that it states differs from its product. A key may be known through another accepted listing.
  Condition *new* and one piece are assumed only where nothing hints otherwise; so where the title
  alone tells of two pieces or of a refurbished article there is no whole key, and the listing is
  a case.

Pages that robots.txt forbids have no listings here: nothing may be collected from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.resources import files
from itertools import combinations
from typing import Any

from prw_examples.street.model import Catalogue, Fact, Kind, Listing, Page, Product, Shop

IdentityKey = tuple[str, ...]


class Outcome(StrEnum):
    """How a listing should end."""

    ACCEPT = "accept"
    CASE = "case"


class Reason(StrEnum):
    """Why it should."""

    TRUSTED = "trusted"
    KNOWN_KEY = "known_key"
    UNKNOWN_KEY = "unknown_key"
    HINT_ONLY = "hint_only"
    CONTRADICTION = "contradiction"


class Expect(StrEnum):
    """How a sitemap entry should end at the collector."""

    RECORDS = "records"
    RECORDS_AFTER_RETRY = "records_after_retry"
    NOT_A_RECORD = "not_a_record"
    ABSENT = "absent"
    REDIRECT_REFUSED = "redirect_refused"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class TrueListing:
    """One listing; (url, seller) names it, with `sku` where a page holds several variants."""

    id: str
    source: str
    host: str
    url: str
    seller: str
    sku: str
    product: str
    outcome: Outcome
    reason: Reason


@dataclass(frozen=True, slots=True)
class TruePage:
    """One sitemap entry and what a collector should make of it."""

    source: str
    url: str
    expect: Expect
    listings: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two listings by id; `why` says how a near miss differs and is empty for the same product."""

    a: str
    b: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Truth:
    """The whole truth; order is that of the catalogue's definition."""

    pages: tuple[TruePage, ...]
    listings: tuple[TrueListing, ...]
    same: tuple[Pair, ...]
    different: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class _Offered:
    id: str
    shop: Shop
    page: Page
    listing: Listing


def load_truth() -> Truth:
    """The packaged truth file, which equals `derive_truth(load_catalogue())`."""
    data = json.loads(files("prw_examples.street").joinpath("truth.json").read_text("utf-8"))
    return Truth(
        pages=tuple(TruePage(**row | {"expect": Expect(row["expect"])}) for row in data["pages"]),
        listings=tuple(_true_listing(row) for row in data["listings"]),
        same=tuple(Pair(a, b) for a, b in data["same"]),
        different=tuple(Pair(a, b, tuple(why)) for a, b, why in data["different"]),
    )


def derive_truth(catalogue: Catalogue) -> Truth:
    """The truth that follows from the street's definition by the rules above."""
    offered = list(_offered(catalogue))
    known = _known_keys(offered)
    pairs = list(combinations(offered, 2))
    return Truth(
        pages=tuple(_pages(catalogue)),
        listings=tuple(_judge(one, known) for one in offered),
        same=tuple(Pair(a.id, b.id) for a, b in pairs if a.listing.product == b.listing.product),
        different=tuple(
            Pair(a.id, b.id, why) for a, b in pairs if (why := near_miss(a.listing, b.listing))
        ),
    )


def near_miss(a: Listing, b: Listing) -> tuple[str, ...]:
    """How two listings that look alike differ; empty if they are the same or far apart."""
    differs = traits(a.product, b.product)
    one_family = (a.product.brand, a.product.family) == (b.product.brand, b.product.family)
    if not differs or not one_family:
        return ()
    same_mpn = a.mpn.casefold() == b.mpn.casefold()
    stale = same_mpn and a.product.mpn != b.product.mpn
    if len(differs) == 1 or a.product.gtin == b.product.gtin or same_mpn:
        return (*differs, "stale_part_number") if stale else differs
    return ()


def traits(a: Product, b: Product) -> tuple[str, ...]:
    """The traits in which two products differ; within a family, none means the same product."""
    names = ("capacity_gb", "heatsink", "condition", "pack")
    return tuple(name for name in names if getattr(a, name) != getattr(b, name))


def keys(listing: Listing) -> frozenset[IdentityKey]:
    """The identity keys that a page states for a listing; none where a hint forbids the default."""
    if listing.hinted():
        return frozenset()
    product = listing.product
    rest = (product.condition.value, str(product.pack))
    stated = set[IdentityKey]()
    if listing.stated(Fact.GTIN) or listing.stated(Fact.GTIN14):
        stated.add(("gtin", product.gtin, *rest))
    if listing.stated(Fact.MPN):
        stated.add(("mpn", product.brand.casefold(), listing.mpn.casefold(), *rest))
    return frozenset(stated)


def dump(truth: Truth) -> str:
    """The truth file's text: one entry a line, so that a change can be reviewed."""
    sections: dict[str, Sequence[object]] = {
        "pages": [asdict(page) for page in truth.pages],
        "listings": [asdict(listing) for listing in truth.listings],
        "same": [[pair.a, pair.b] for pair in truth.same],
        "different": [[pair.a, pair.b, pair.why] for pair in truth.different],
    }
    return "{\n" + ",\n".join(_section(name, rows) for name, rows in sections.items()) + "\n}\n"


def _section(name: str, rows: Sequence[object]) -> str:
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    return f'"{name}": [\n{lines}\n]'


def _true_listing(row: Mapping[str, Any]) -> TrueListing:
    states = {"outcome": Outcome(row["outcome"]), "reason": Reason(row["reason"])}
    return TrueListing(**{**row, **states})


def _offered(catalogue: Catalogue) -> Iterator[_Offered]:
    for shop in catalogue.shops:
        for page in shop.allowed_pages():
            for listing in page.listings:
                yield _Offered(f"{shop.id}{page.path}#{listing.sku}", shop, page, listing)


def _contradicts(listing: Listing) -> bool:
    return listing.stale_mpn_of is not None


def _known_keys(offered: Sequence[_Offered]) -> frozenset[IdentityKey]:
    """The keys that items own once everything has arrived, in whatever order."""
    sound = [one for one in offered if not _contradicts(one.listing)]
    known = {key for one in sound if one.shop.trusted for key in keys(one.listing)}
    while reached := _reached(sound, known) - known:
        known |= reached
    return frozenset(known)


def _reached(sound: Sequence[_Offered], known: set[IdentityKey]) -> set[IdentityKey]:
    linked = (keys(one.listing) for one in sound if keys(one.listing) & known)
    return {key for stated in linked for key in stated}


def _judge(one: _Offered, known: frozenset[IdentityKey]) -> TrueListing:
    reason = _reason(one, known)
    accepted = reason in (Reason.TRUSTED, Reason.KNOWN_KEY)
    return TrueListing(
        id=one.id,
        source=one.shop.id,
        host=one.shop.host,
        url=one.shop.url(one.page.path),
        seller=one.listing.seller,
        sku=one.listing.sku,
        product=one.listing.product.key,
        outcome=Outcome.ACCEPT if accepted else Outcome.CASE,
        reason=reason,
    )


def _reason(one: _Offered, known: frozenset[IdentityKey]) -> Reason:
    if _contradicts(one.listing):
        return Reason.CONTRADICTION
    if one.listing.hinted():
        return Reason.HINT_ONLY
    if one.shop.trusted:
        return Reason.TRUSTED
    return Reason.KNOWN_KEY if keys(one.listing) & known else Reason.UNKNOWN_KEY


def _pages(catalogue: Catalogue) -> Iterator[TruePage]:
    ends = {
        Kind.TEXT: Expect.NOT_A_RECORD,
        Kind.GONE: Expect.ABSENT,
        Kind.REDIRECT: Expect.REDIRECT_REFUSED,
    }
    for shop in catalogue.shops:
        for page in shop.pages:
            count = 0 if shop.forbidden(page.path) else len(page.listings)
            yield TruePage(shop.id, shop.url(page.path), _expect(shop, page), count)
        for other in shop.others:
            yield TruePage(shop.id, shop.url(other.path), ends[other.kind], 0)


def _expect(shop: Shop, page: Page) -> Expect:
    if shop.forbidden(page.path):
        return Expect.FORBIDDEN
    return Expect.RECORDS_AFTER_RETRY if page.unavailable_once else Expect.RECORDS
