"""One walk that nothing disturbs, for others to be held against."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prw_base.server.postgres import Cluster
from prw_examples.demo.audit.model import Figures, Listing, match_truth
from prw_examples.demo.layout import SCOPE
from prw_examples.demo.rest import Standing
from prw_examples.street import load_truth
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Item, ItemKey
from tests.support.endstate import EndState, end_state
from tests.support.walk import Walk, walking


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What it came to; `listings` are by the truth file's ids, `pages` what the collector made of each page."""

    state: EndState
    standing: Standing
    figures: Figures
    listings: Mapping[str, Listing]
    pages: Mapping[str, Item]
    served: Mapping[str, int]


def walk_undisturbed(cluster: Cluster, folder: Path) -> Undisturbed:
    """Do that walk."""

    async def walked() -> Undisturbed:
        async with walking(cluster, folder) as walk:
            await walk.collect_all()
            standing = await walk.at_rest()
            return await _observe(walk, standing)

    return asyncio.run(walked())


async def _observe(walk: Walk, standing: Standing) -> Undisturbed:
    async with walk.books() as books:
        listings = await books.listings(standing.product)
    return Undisturbed(
        state=await end_state(walk),
        standing=standing,
        figures=await walk.figures(),
        listings=match_truth(listings, load_truth()),
        pages=_pages(walk.layout.spool),
        served={
            f"http://{host}{path}": times for (host, path), times in walk.street.served.items()
        },
    )


def _pages(folder: Path) -> dict[str, Item]:
    spool = Spool.existing(folder)
    asked = (
        (page.url, spool.ledger.item(ItemKey(SCOPE.tenant_id, page.source, page.url)))
        for page in load_truth().pages
    )
    found = {url: item for url, item in asked if item is not None}
    spool.close()
    return found
