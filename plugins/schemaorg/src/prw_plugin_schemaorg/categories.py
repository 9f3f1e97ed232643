"""Reading the pages of a category: the products that they link to, page after page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import parsel
from lxml import etree

from prw_plugin_schemaorg.addresses import joined, page_id
from prw_plugin_schemaorg.dom import elements, parse
from prw_plugin_schemaorg.settings import SchemaOrgSettings
from prw_sdk.adapter import Net, NetFailed
from prw_sdk.evidence import Part

MOST_PAGES = 1000
"""A category of more pages is not followed: it may have no end."""

_ACCEPT = "text/html, application/xhtml+xml;q=0.9"
_ABSENT = (404, 410)


@dataclass(frozen=True, slots=True)
class Category:
    """What a category lists; `is_cut` where it has more pages than are followed."""

    address: str
    products: tuple[str, ...]
    is_cut: bool = False


async def listed(settings: SchemaOrgSettings, net: Net) -> AsyncIterator[Category]:
    """Each category with the products of all its pages, which may overlap; each page is read once.

    A later page that is gone ends its category, since lists grow shorter while they are read.
    """
    links = parsel.css2xpath(settings.links or "a")
    following = parsel.css2xpath(settings.next_page)
    for category in settings.categories:
        found: dict[str, None] = {}
        read: set[str] = set()
        page: str | None = category
        while page is not None and page_id(page) not in read and len(read) < MOST_PAGES:
            part = await _page(page, net, is_first=not read)
            read.add(page_id(page))
            found.update(dict.fromkeys(_addresses(part, links)))
            page = next(iter(_addresses(part, following)), None)
        is_cut = page is not None and page_id(page) not in read
        yield Category(category, tuple(found), is_cut)


async def _page(url: str, net: Net, *, is_first: bool) -> Part | None:
    try:
        return await net.get(url, role="category", accept=_ACCEPT)
    except NetFailed as failed:
        if is_first or failed.status not in _ABSENT:
            raise
        return None


def _addresses(part: Part | None, path: str) -> list[str]:
    """Where the elements of a path lead, or the first link within each."""
    tree = None if part is None else parse(part.text())
    if tree is None or part is None:
        return []
    hrefs = (_href(one) for one in elements(tree, path))
    return [joined(part.url_reached, href) for href in hrefs if href]


def _href(element: etree._Element) -> str:
    holder = element if "href" in element.attrib else next(element.iter("a"), element)
    return holder.get("href", "").strip()
