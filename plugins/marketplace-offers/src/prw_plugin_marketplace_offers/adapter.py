"""The adapter: any marketplace whose offers are listed by an interface that answers in JSON pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import cast

from prw_plugin_marketplace_offers.inventory import FIELDS, SURFACES
from prw_plugin_marketplace_offers.records import ROLE, leaves, records
from prw_plugin_marketplace_offers.settings import PINNED, OffersSettings, reading
from prw_plugin_marketplace_offers.walk import ACCEPT, Walk
from prw_sdk.adapter import (
    Adapter,
    Batch,
    Checkpoint,
    Disposition,
    Excluded,
    Fetched,
    Net,
    Source,
    Stated,
    Stored,
    Target,
)
from prw_sdk.adapter.naming import pinned
from prw_sdk.evidence import Capture, Part, Record
from prw_sdk.take import SELLER, stated


class MarketplaceOffers(Adapter):
    """One capture a page of the list; one record for each offer of one seller for one item (rule 15)."""

    name = "marketplace-offers"
    version = "0.1.0"
    settings = OffersSettings
    surfaces = SURFACES
    fields = FIELDS
    merchant_field = "seller.name"

    def __init__(self) -> None:
        self._read_for_plan: dict[str, Part] = {}

    def plan(self, source: Source, checkpoint: Checkpoint | None, net: Net) -> AsyncIterator[Batch]:
        """Every page that shows an offer which no earlier one showed, over as many passes as that takes."""
        settings = cast(OffersSettings, source.settings)
        return Walk(settings, self._read_for_plan).batches(checkpoint, net)

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """The page as the plan has just read it; asked for where that was another run's plan."""
        part = self._read_for_plan.pop(target.url, None)
        return Fetched((part or await net.get(target.url, role=ROLE, accept=ACCEPT),))

    def read(self, capture: Capture) -> Iterable[Record]:
        """The page's offers; raises `NotARecord` for what is no page of offers."""
        return tuple(records(capture, self.dispositions(capture)))

    def stated(self, capture: Capture) -> Iterable[Stated]:
        """Every name within the page's items."""
        return stated(leaves(capture))

    def disposition(self, name: str, config: Mapping[str, object]) -> Disposition | None:
        """As the source's own settings say, else as declared; of the seller's names only the one pointed to."""
        own = reading(config).disposition(name)
        declared = super().disposition(name, config)
        if own is None and isinstance(declared, Stored) and declared.target == SELLER:
            return Excluded("another name of the seller's than the one that `seller` points to")
        return own or declared

    def config(self, source: Source) -> Mapping[str, object]:
        """The market's hints, and where an offer stands in a page."""
        return {**super().config(source), **pinned(source.settings, *PINNED)}
