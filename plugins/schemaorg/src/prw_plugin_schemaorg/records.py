"""Records: one for each variant and each seller's offer of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from prw_plugin_schemaorg.articles import Article
from prw_plugin_schemaorg.facts import Facts, Offer
from prw_plugin_schemaorg.nodes import Graph, Leaf, local_name
from prw_plugin_schemaorg.page import ROLE, Page
from prw_plugin_schemaorg.vocabulary import (
    CONDITION,
    CURRENCY,
    GTIN,
    MPN,
    SELLER,
    SITE_NAME,
    SITE_TYPES,
    SKU,
    TITLE,
    URL,
)
from prw_sdk.evidence import Claim, Locator, Record

_LONGEST_PART = 120
_LONGEST_FRAGMENT = 600
_NUMBERS = (SKU, MPN, GTIN, URL, TITLE)
_TELL_APART = {"sku": SKU, "condition": CONDITION, "currency": CURRENCY}

Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Listing:
    facts: Facts
    seller: Leaf | None
    key: Key


def records(page: Page, articles: Iterable[Article]) -> Iterator[Record]:
    """The page's records; of offers that nothing tells apart the first stands for all."""
    pairs = [(one, offer) for one in articles for offer in one.offers or (Offer(),)]
    site = _site_name(page)
    owner = None if any(offer.seller or offer.is_range for _, offer in pairs) else site
    sellers = owner if page.reading.site_is_seller else None
    listings = [
        _Listing({**one.facts, **offer.facts}, offer.seller or sellers, _key(one, offer, site))
        for one, offer in pairs
    ]
    return (_record(page, listing) for listing in _told_apart(listings))


def _key(article: Article, offer: Offer, site: Leaf | None) -> Key:
    """What tells the listing from others under its page's address, in this capture and in all later ones.

    A seller other than the site's owner is always part of it, so that the key stays when other sellers come or go.
    """
    parts: list[tuple[str, str]] = []
    number = next((article.facts[name][0].text for name in _NUMBERS if name in article.facts), "")
    if article.varies and number:
        parts.append(("variant", number))
    if offer.seller is not None and (site is None or _folded(site) != _folded(offer.seller)):
        parts.append(("seller", " ".join(offer.seller.text.split())))
    return tuple(parts)


def _folded(leaf: Leaf) -> str:
    return " ".join(leaf.text.split()).casefold()


def _told_apart(listings: Sequence[_Listing]) -> Iterable[_Listing]:
    times = Counter(listing.key for listing in listings)
    keyed = [_longer(one) if times[one.key] > 1 else one for one in listings]
    return {listing.key: listing for listing in reversed(keyed)}.values().__reversed__()


def _longer(listing: _Listing) -> _Listing:
    more = (
        (name, local_name(listing.facts[attribute][0].text))
        for name, attribute in _TELL_APART.items()
        if attribute in listing.facts
    )
    return replace(listing, key=(*listing.key, *more))


def _record(page: Page, listing: _Listing) -> Record:
    fragment = _bounded(
        "&".join(f"{name}={quote(text[:_LONGEST_PART], safe='')}" for name, text in listing.key)
    )
    claims = (
        _claim(attribute, leaf) for attribute, leaves in listing.facts.items() for leaf in leaves
    )
    return Record(
        record_id=fragment or "product",
        listing_key=f"{page.address}#{fragment}" if fragment else page.address,
        merchant=None if listing.seller is None else _claim(SELLER, listing.seller),
        claims=tuple(claims),
    )


def _bounded(fragment: str) -> str:
    """The fragment, its end replaced by a digest of the whole where it is longer than an id should be."""
    if len(fragment) <= _LONGEST_FRAGMENT:
        return fragment
    digest = hashlib.sha256(fragment.encode()).hexdigest()[:16]
    return f"{fragment[: _LONGEST_FRAGMENT - len(digest) - 1]}~{digest}"


def _claim(attribute: str, leaf: Leaf) -> Claim:
    return Claim(attribute, leaf.text, Locator(ROLE, leaf.selector))


def _site_name(page: Page) -> Leaf | None:
    """The name that the page states for its site; None where the markup names several owners."""
    for names in _site_names(page):
        if names:
            return names[0] if len(set(map(_folded, names))) == 1 else None
    return None


def _site_names(page: Page) -> Iterator[list[Leaf]]:
    if SITE_NAME not in page.reading.exclusions:
        yield [leaf for leaf in page.opengraph.all(SITE_NAME) if isinstance(leaf, Leaf)]
    for kind in SITE_TYPES:
        if f"{kind}.name" not in page.reading.exclusions:
            yield [*_names(page.jsonld, kind), *_names(page.microdata, kind)]


def _names(graph: Graph, kind: str) -> Iterator[Leaf]:
    return (
        leaf for root in graph.roots if kind in root.types for leaf in graph.leaves(root, "name")
    )
