"""The articles of a page: one markup chosen, and completed from the others where they speak of the same product."""

from __future__ import annotations

from dataclasses import dataclass, replace

from prw_plugin_schemaorg.facts import (
    IDENTIFIERS,
    Facts,
    Offer,
    opengraph_facts,
    opengraph_offers,
    product_facts,
    product_offers,
)
from prw_plugin_schemaorg.nodes import Graph
from prw_plugin_schemaorg.page import Page
from prw_plugin_schemaorg.selection import choose
from prw_plugin_schemaorg.vocabulary import GTIN, OPENGRAPH_PRICES, PRICE, TITLE, URL
from prw_sdk.adapter import NotARecord


@dataclass(frozen=True, slots=True)
class Article:
    """A product or one variant of it; `varies` where the page holds others beside it."""

    facts: Facts
    offers: tuple[Offer, ...]
    varies: bool = False

    @property
    def says_something(self) -> bool:
        """Whether anything is stated of it at all."""
        return bool(self.facts) or any(offer.facts or offer.seller for offer in self.offers)

    @property
    def completeness(self) -> int:
        """2 for a product with a name and a price, 1 for one with a name, else 0."""
        priced = any(PRICE in offer.facts for offer in self.offers)
        return (TITLE in self.facts) + (TITLE in self.facts and priced)


def articles(page: Page) -> tuple[Article, ...]:
    """What the page sells; raises `NotARecord` where that is no one product.

    The more complete markup counts, of equals JSON-LD before microdata before OpenGraph. What it does not state is
    taken from the others where they state the same product: without a variant, and no identifier contradicting.
    """
    (linked, is_list), (inline, is_table) = (_of(page.jsonld, page), _of(page.microdata, page))
    marked = [found for found in (linked, inline, _opengraph(page)) if found]
    stated = [found for found in marked if any(article.says_something for article in found)]
    if not stated:
        silent = (
            "the product markup states nothing: it is empty, or a template that nobody filled in"
        )
        raise NotARecord(silent if marked else _reason(page, is_list or is_table))
    chosen = max(stated, key=lambda found: max(article.completeness for article in found))
    if len(chosen) > 1 or chosen[0].varies:
        return chosen
    article = chosen[0]
    for found in stated:
        if (
            found is not chosen
            and len(found) == 1
            and _is_same(article.facts, found[0].facts, page)
        ):
            article = _completed(article, found[0])
    return (_with_address(article, page),)


def _of(graph: Graph, page: Page) -> tuple[tuple[Article, ...], bool]:
    choice = choose(graph, page)
    found = (
        Article(
            product_facts(graph, one.node, one.group, page.reading),
            tuple(product_offers(graph, one.node, one.offers, page.reading)),
            one.varies,
        )
        for one in choice.candidates
    )
    return tuple(found), choice.is_list


def _opengraph(page: Page) -> tuple[Article, ...]:
    """The product of the OpenGraph: by its type, or by a price."""
    node = page.opengraph
    is_product = any("product" in kind and "group" not in kind for kind in node.types)
    is_priced = any(next(node.all(amount), None) for amount, _ in OPENGRAPH_PRICES)
    if not (is_product or is_priced):
        return ()
    return (
        Article(opengraph_facts(node, page.reading), tuple(opengraph_offers(node, page.reading))),
    )


def _reason(page: Page, is_list: bool) -> str:
    if is_list:
        return "a list, not one product"
    if page.has_broken_scripts:
        return "no product markup that can be read: the page's JSON-LD is broken"
    return "no product markup on the page"


def _is_same(one: Facts, other: Facts, page: Page) -> bool:
    """Whether two markups of one page mean one product: no number disagrees, and a number, name or address agrees."""
    shared = [name for name in IDENTIFIERS if name in one and name in other]
    if any(not _numbers(one, name) & _numbers(other, name) for name in shared):
        return False
    if shared or _texts(one, TITLE) & _texts(other, TITLE):
        return True
    return all(page.is_here(leaf.text) for leaf in (*one.get(URL, ()), *other.get(URL, ())))


def _numbers(facts: Facts, name: str) -> set[str]:
    texts = _texts(facts, name)
    return {text.lstrip("0") for text in texts} if name == GTIN else texts


def _texts(facts: Facts, name: str) -> set[str]:
    return {" ".join(leaf.text.split()).casefold() for leaf in facts.get(name, ())}


def _completed(article: Article, other: Article) -> Article:
    """Add what is missing. An offer is taken as a whole or not at all, so that no price gets another's currency."""
    priced = any(PRICE in offer.facts for offer in article.offers)
    if priced or not any(PRICE in offer.facts for offer in other.offers) or len(article.offers) > 1:
        return replace(article, facts={**other.facts, **article.facts})
    stated = article.offers[0] if article.offers else Offer()
    if stated.is_range:
        return replace(article, facts={**other.facts, **article.facts})
    offer = other.offers[0]
    whole = replace(
        offer, facts={**offer.facts, **stated.facts}, seller=stated.seller or offer.seller
    )
    return Article({**other.facts, **article.facts}, (whole, *other.offers[1:]), article.varies)


def _with_address(article: Article, page: Page) -> Article:
    if (
        page.canonical is None
        or URL in article.facts
        or "link.canonical" in page.reading.exclusions
    ):
        return article
    return replace(article, facts={**article.facts, URL: (page.canonical,)})
