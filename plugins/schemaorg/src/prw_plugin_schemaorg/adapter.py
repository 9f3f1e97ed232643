"""The adapter: any shop whose pages carry schema.org Product markup, or OpenGraph's product properties."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import cast

from prw_plugin_schemaorg import walk
from prw_plugin_schemaorg.articles import articles
from prw_plugin_schemaorg.inventory import FIELDS, SURFACES
from prw_plugin_schemaorg.page import ROLE, open_page
from prw_plugin_schemaorg.records import records
from prw_plugin_schemaorg.settings import PINNED, SchemaOrgSettings, reading
from prw_plugin_schemaorg.stated import stated
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

_ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.5"


class SchemaOrg(Adapter):
    """Product pages found by sitemap, read from JSON-LD, microdata or OpenGraph."""

    name = "schemaorg"
    version = "0.1.0"
    settings = SchemaOrgSettings
    surfaces = SURFACES
    fields = FIELDS
    merchant_field = "offers.seller.name"
    lists_everything = True

    def plan(self, source: Source, checkpoint: Checkpoint | None, net: Net) -> AsyncIterator[Batch]:
        """Every page of the shop's sitemaps, once a run; a run that was cut off is taken up where it ended."""
        return walk.batches(cast(SchemaOrgSettings, source.settings), checkpoint, net)

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The page itself."""
        return Fetched((await net.get(target.url, role=ROLE, accept=_ACCEPT),))

    def read(self, capture: Capture) -> Iterable[Record]:
        """The page's records; raises `NotARecord` for a list, or a page without a product."""
        page = open_page(capture)
        return tuple(records(page, articles(page)))

    def stated(self, capture: Capture) -> Iterable[Stated]:
        """Every labelled name of the page with its kinds; raises `NotARecord` where the capture holds no page."""
        return stated(open_page(capture))

    def disposition(self, name: str, config: Mapping[str, object]) -> Disposition | None:
        """As declared, extended by the source's own settings."""
        return reading(config).disposition(name) or super().disposition(name, config)

    def config(self, source: Source) -> Mapping[str, object]:
        """The market's hints, and how the source names its properties."""
        return {**super().config(source), **pinned(source.settings, *PINNED)}
