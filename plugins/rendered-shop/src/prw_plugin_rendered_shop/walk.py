"""Which products there are: list after list, page after page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml import etree

from prw_plugin_rendered_shop.page import parse, select
from prw_plugin_rendered_shop.settings import RenderedShopSettings
from prw_sdk.adapter import Batch, Checkpoint, Net, Target
from prw_sdk.evidence import Part

COMPLETE = Checkpoint({"complete": True})
_LIST = "list"


class TooMuch(Exception):
    """The shop's lists have more pages than are followed; what was listed up to there is collected."""


async def batches(
    settings: RenderedShopSettings, checkpoint: Checkpoint | None, net: Net
) -> AsyncIterator[Batch]:
    """A batch for each page of a list, then the products that the settings name; a run that was cut off goes on."""
    state = {} if checkpoint is None else checkpoint.state
    begun, onward = state.get("list"), state.get("next")
    start = settings.lists.index(str(begun)) if begun in settings.lists else 0
    seen: set[str] = set()
    pages = 0
    for address in settings.lists[start:]:
        here: str | None = str(onward) if address == begun and onward else address
        while here is not None and here not in seen and pages < settings.most_lists:
            seen.add(here)
            pages += 1
            part = await _asked(settings, here, net)
            here = _next(settings, part)
            found = tuple(one for one in _products(settings, part) if one.native_id not in seen)
            seen.update(one.native_id for one in found)
            reached = {"list": address, "next": here} if here is not None else None
            yield Batch(found, None if reached is None else Checkpoint(reached))
    named = dict.fromkeys(map(_whole, settings.products))
    yield Batch(tuple(Target(url, url) for url in named if url not in seen))
    # before the complaint, so that the next run begins anew
    yield Batch((), COMPLETE)
    if pages >= settings.most_lists:
        raise TooMuch(f"more than {settings.most_lists} pages of lists: see `most_lists`")


async def _asked(settings: RenderedShopSettings, url: str, net: Net) -> Part:
    if not settings.lists_rendered:
        return await net.get(url, role=_LIST, accept="text/html")
    parts = await net.render(url, role=_LIST, wait_for=settings.wait_for_list)
    return next(part for part in parts if part.role == _LIST)


def _products(settings: RenderedShopSettings, part: Part) -> list[Target]:
    tree = parse(part)
    links = [] if tree is None else select(tree, settings.links)
    addresses = dict.fromkeys(url for link in links if (url := led_to(part, link)) is not None)
    return [Target(url, url) for url in addresses]


def _next(settings: RenderedShopSettings, part: Part) -> str | None:
    tree = parse(part)
    found = [] if tree is None else select(tree, settings.next)
    return led_to(part, found[0]) if found else None


def led_to(part: Part, link: etree._Element) -> str | None:
    """Where a link of a page leads; None where it leads away from the shop's own host."""
    href = link.get("href", "").strip()
    try:
        url = _whole(urljoin(part.url_reached, href))
        host, own = urlsplit(url).hostname, urlsplit(part.url_reached).hostname
    except ValueError:
        return None
    is_page = url.startswith(("http://", "https://")) and host == own
    return url if href and is_page else None


def _whole(url: str) -> str:
    return urldefrag(url).url
