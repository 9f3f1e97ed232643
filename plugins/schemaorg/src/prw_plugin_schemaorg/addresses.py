"""Addresses of pages: which one a page is known under, and which are the same page."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, urljoin, urlsplit

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
    return (_split(url).hostname or "").lower().removeprefix("www.")


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
    stated = joined(base, canonical or "")
    is_home = _split(stated).path in ("", "/") and not _split(stated).query
    if canonical is None or site(stated) != site(native_id):
        return native_id
    return native_id if is_home and _split(native_id).path not in ("", "/") else page_id(stated)


def is_page(url: str, page: str) -> bool:
    """Whether an address leads to that page, or to a choice on it (the same address with more parameters)."""
    one, other = _split(url), _split(page)
    if (site(url), one.path.rstrip("/")) != (site(page), other.path.rstrip("/")):
        return False
    return set(parse_qsl(other.query)) <= set(parse_qsl(one.query))


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", url, "", "")
