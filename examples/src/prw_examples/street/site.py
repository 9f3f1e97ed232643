"""What each address of the street answers, before any socket is involved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prw_examples.street import render
from prw_examples.street.model import Catalogue, Kind, Other, Page, Shop

PAGES_PER_SITEMAP = 12
UNAVAILABLE_SECONDS = 1

Address = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; `headers` holds what the status needs beyond the media type."""

    status: int
    body: bytes
    media_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resource:
    """What an address answers, and what it answers the first time if that differs."""

    answer: Answer
    first: Answer | None = None


def resources(catalogue: Catalogue) -> dict[Address, Resource]:
    """Every address of the street, by host and path."""
    return {
        (shop.host, path): resource for shop in catalogue.shops for path, resource in _shop(shop)
    }


def sitemaps(shop: Shop) -> dict[str, list[str]]:
    """The shop's sitemaps: path of each, and the URLs that it lists (forbidden ones included)."""
    paths = [page.path for page in shop.pages] + [other.path for other in shop.others]
    starts = range(0, len(paths), PAGES_PER_SITEMAP)
    return {
        f"/sitemaps/{number}.xml": [
            shop.url(path) for path in paths[start : start + PAGES_PER_SITEMAP]
        ]
        for number, start in enumerate(starts, 1)
    }


def _shop(shop: Shop) -> Iterator[tuple[str, Resource]]:
    yield "/robots.txt", Resource(Answer(200, render.robots(shop), "text/plain; charset=utf-8"))
    yield "/", Resource(Answer(200, render.text_page(shop, shop.name, shop.allowed_pages())))
    yield from _sitemaps(shop)
    for page in shop.pages:
        yield page.path, _page(shop, page)
    for other in shop.others:
        yield other.path, Resource(_other(shop, other))


def _sitemaps(shop: Shop) -> Iterator[tuple[str, Resource]]:
    parts = sitemaps(shop)
    index = render.sitemap_index(shop.url(path) for path in parts)
    yield "/sitemap.xml", Resource(Answer(200, index, "application/xml"))
    for path, urls in parts.items():
        yield path, Resource(Answer(200, render.sitemap(urls), "application/xml"))


def _page(shop: Shop, page: Page) -> Resource:
    media_type = f"text/html; charset={page.encoding}"
    answer = Answer(200, render.product_page(shop, page), media_type)
    return Resource(answer, _unavailable(shop) if page.unavailable_once else None)


def _unavailable(shop: Shop) -> Answer:
    body = render.text_page(shop, "Service unavailable")
    return Answer(503, body, headers={"Retry-After": str(UNAVAILABLE_SECONDS)})


def _other(shop: Shop, other: Other) -> Answer:
    if other.kind is Kind.REDIRECT:
        return Answer(302, b"", headers={"Location": other.location})
    if other.kind is Kind.GONE:
        return missing(shop)
    return Answer(200, render.text_page(shop, other.title))


def missing(shop: Shop) -> Answer:
    """The shop's answer for an address that it does not know."""
    return Answer(404, render.text_page(shop, "404"))
