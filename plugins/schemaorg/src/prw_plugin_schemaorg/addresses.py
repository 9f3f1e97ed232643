"""Addresses of pages: which one a page is known under, and which are the same page."""

from __future__ import annotations

from urllib.parse import parse_qsl, urljoin, urlsplit

from w3lib.url import canonicalize_url, url_query_cleaner

_TRACKING = (
    *(f"utm_{name}" for name in ("source", "medium", "campaign", "term", "content", "id")),
    *("gclid", "fbclid", "msclkid"),
)


def page_id(url: str) -> str:
    """The stable form of a page's address: no fragment, no tracking parameters, its query in order."""
    return str(canonicalize_url(url_query_cleaner(url, _TRACKING, remove=True, unique=False)))


def site(url: str) -> str:
    """The host of an address as a shop is known by, without a leading ``www.``; empty where there is none."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.lower().removeprefix("www.")


def joined(base: str, url: str) -> str:
    """The absolute form of a stated address; as it stands where it is none."""
    try:
        return urljoin(base, url.strip())
    except ValueError:
        return url


def known_as(native_id: str, canonical: str | None, base: str) -> str:
    """The canonical address that a page states, where it can be true of this page; else the planned one.

    A canonical link to another site, or from every page to the home page, is a mistake that would make one listing of
    many.
    """
    if canonical is None:
        return native_id
    stated = joined(base, canonical)
    is_home = urlsplit(stated).path in ("", "/") and not urlsplit(stated).query
    if site(stated) != site(native_id) or (is_home and urlsplit(native_id).path not in ("", "/")):
        return native_id
    return page_id(stated)


def is_page(url: str, page: str) -> bool:
    """Whether an address leads to that page, or to a choice on it (the same address with more parameters)."""
    try:
        one, other = urlsplit(url), urlsplit(page)
    except ValueError:
        return False
    if (site(url), one.path.rstrip("/")) != (site(page), other.path.rstrip("/")):
        return False
    return set(parse_qsl(other.query)) <= set(parse_qsl(one.query))
