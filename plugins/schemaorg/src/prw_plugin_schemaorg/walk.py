"""The walk over a shop's sitemaps and categories, which a later run can take up where an earlier one was cut off."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from urllib.parse import urljoin

from prw_plugin_schemaorg import categories, sitemap
from prw_plugin_schemaorg.addresses import page_id, site
from prw_plugin_schemaorg.settings import SchemaOrgSettings
from prw_sdk.adapter import Batch, Checkpoint, Net, NetFailed, Target

MOST_SITEMAPS = 5000
"""More of them are not followed: they may have no end."""

COMPLETE = Checkpoint({"complete": True})

_ACCEPT = "application/xml, text/xml;q=0.9, */*;q=0.5"


async def batches(
    settings: SchemaOrgSettings, checkpoint: Checkpoint | None, net: Net
) -> AsyncIterator[Batch]:
    """All pages of all sitemaps; after a checkpoint only what comes after it, in the same order.

    The order within a sitemap is that of the pages' ids, so that pages that come or go meanwhile shift nothing. Where
    the checkpoint's sitemap is no longer listed the walk starts anew.
    """
    walk = Walk(settings, checkpoint)
    async for batch in walk.run(net):
        yield batch
    if walk.is_lost:
        walk = Walk(settings, None)
        async for batch in walk.run(net):
            yield batch
    # before the complaint, so that the next run begins anew and not where this one was cut off
    yield Batch((), COMPLETE)
    if walk.is_cut:
        raise TooMuch(
            f"one of the sitemaps lists more than {sitemap.MOST_ADDRESSES} addresses, a category has more than "
            f"{categories.MOST_PAGES} pages, or there are more than {MOST_SITEMAPS} sitemaps; the rest was not read: "
            "name some of them in `sitemaps` or `categories`"
        )


class TooMuch(Exception):
    """The shop's sitemaps or categories list more than is followed."""


class Walk:
    """One pass; `is_lost` once it has ended without meeting the sitemap to start from."""

    def __init__(self, settings: SchemaOrgSettings, checkpoint: Checkpoint | None) -> None:
        state = {} if checkpoint is None else checkpoint.state
        self._sought = state.get("sitemap")
        self._after = str(state.get("after", ""))
        self._settings = settings
        self._sites = {
            site(url) for url in (settings.site or "", *settings.sitemaps, *settings.categories)
        } - {""}
        self._seen: set[str] = set()
        self.is_cut = False

    @property
    def is_lost(self) -> bool:
        """Whether the sitemap to start from was not met."""
        return self._sought is not None

    async def run(self, net: Net) -> AsyncIterator[Batch]:
        """The batches, each with the checkpoint that holds once it is done."""
        async for address, pages in self._lists(net):
            targets = iter(self._targets(address, pages))
            while batch := tuple(islice(targets, self._settings.batch_size)):
                reached = {"sitemap": address, "after": batch[-1].native_id}
                yield Batch(batch, Checkpoint(reached))

    async def _lists(self, net: Net) -> AsyncIterator[tuple[str, Sequence[str]]]:
        """Each sitemap, then each category, with the pages that it lists."""
        settings = self._settings
        if settings.sitemaps or not settings.categories:
            async for listed in self._listed(await self._starts(net), net):
                yield listed
        async for category in categories.listed(settings, net):
            self.is_cut |= category.is_cut
            yield category.address, category.products

    async def _starts(self, net: Net) -> Sequence[str]:
        if self._settings.sitemaps:
            return self._settings.sitemaps
        home = self._settings.site or ""
        try:
            robots = await net.get(urljoin(home, "/robots.txt"), role="robots", accept="text/plain")
        except NetFailed as failed:
            if not _is_absent(failed):
                raise
            return (urljoin(home, "/sitemap.xml"),)
        return sitemap.in_robots(robots.text()) or (urljoin(home, "/sitemap.xml"),)

    def _targets(self, address: str, pages: Sequence[str]) -> Iterator[Target]:
        """The wanted pages of one sitemap that no earlier one listed, without those already done."""
        wanted = {page_id(url): url for url in reversed(pages) if self._is_wanted(url)}
        new = sorted(wanted.keys() - self._seen)
        self._seen.update(new)
        if self._sought not in (None, address):
            return iter(())
        after = "" if self._sought is None else self._after
        self._sought = None
        return (Target(native_id, wanted[native_id]) for native_id in new if native_id > after)

    def _is_wanted(self, url: str) -> bool:
        settings = self._settings
        if site(url) not in self._sites or any(re.search(one, url) for one in settings.exclude):
            return False
        return not settings.include or any(re.search(one, url) for one in settings.include)

    async def _listed(
        self, starts: Sequence[str], net: Net
    ) -> AsyncIterator[tuple[str, tuple[str, ...]]]:
        """Each sitemap that lists pages, in the order of the indexes; one listed in vain is passed over."""
        waiting, seen = list(reversed(starts)), set(starts)
        while waiting:
            address = waiting.pop()
            try:
                part = await net.get(address, role="sitemap", accept=_ACCEPT)
            except NetFailed as failed:
                if address in starts or not _is_absent(failed):
                    raise
                continue
            # in a thread, since fifty thousand addresses take a while that other sources should not wait
            found = await asyncio.to_thread(sitemap.parse, part)
            new = [one for one in dict.fromkeys(found.sitemaps) if one not in seen]
            inner = new[: MOST_SITEMAPS - len(seen)]
            self.is_cut |= found.is_cut or len(inner) < len(new)
            seen.update(inner)
            waiting.extend(reversed(inner))
            if found.pages:
                yield address, found.pages


def _is_absent(failed: NetFailed) -> bool:
    return failed.status in (404, 410)
