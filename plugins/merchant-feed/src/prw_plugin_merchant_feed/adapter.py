"""The adapter: product feeds as merchants make them for Google, and any table that can be mapped to their columns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import cast

from prw_plugin_merchant_feed.encoding import FEED, parts
from prw_plugin_merchant_feed.inventory import FIELDS, SURFACES, disposition
from prw_plugin_merchant_feed.reading import leaves, records
from prw_plugin_merchant_feed.settings import PINNED, MerchantFeedSettings
from prw_sdk.adapter import (
    Adapter,
    Batch,
    Checkpoint,
    Disposition,
    Fetched,
    Net,
    Source,
    Stated,
    Target,
)
from prw_sdk.adapter.naming import pinned
from prw_sdk.evidence import Capture, Record
from prw_sdk.take import stated

COMPLETE = Checkpoint({"complete": True})

_ACCEPT = "application/xml, text/xml, text/csv, text/tab-separated-values, */*;q=0.5"


class MerchantFeed(Adapter):
    """Each feed is a capture; each of its items a record."""

    name = "merchant-feed"
    version = "0.1.0"
    settings = MerchantFeedSettings
    surfaces = SURFACES
    fields = FIELDS
    merchant_field = "channel.title"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """The feeds in their order, a batch each; a run that was cut off goes on after the last one that is done."""
        feeds = cast(MerchantFeedSettings, source.settings).feeds
        after = None if checkpoint is None else checkpoint.state.get("after")
        start = feeds.index(str(after)) + 1 if after in feeds else 0
        for feed in feeds[start:]:
            yield Batch((Target(feed, feed),), Checkpoint({"after": feed}))
        yield Batch((), COMPLETE)

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The feed, unpacked where it is a gzip file; what was sent is kept too."""
        return Fetched(parts(await net.get(target.url, role=FEED, accept=_ACCEPT)))

    def read(self, capture: Capture) -> Iterable[Record]:
        """The records, made while the feed is read; raises `NotARecord` where there is none."""
        return records(capture, self.dispositions(capture))

    def stated(self, capture: Capture) -> Iterable[Stated]:
        """Every labelled name of the feed, in Google's words where the source's settings translate it."""
        return stated(leaves(capture))

    def disposition(self, name: str, config: Mapping[str, object]) -> Disposition | None:
        """As declared, extended by the source's own settings."""
        return disposition(name, config)

    def config(self, source: Source) -> Mapping[str, object]:
        """The market's hints, and what the feed's names stand for."""
        return {**super().config(source), **pinned(source.settings, *PINNED)}
