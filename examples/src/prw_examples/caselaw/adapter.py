"""The adapter: list, detail page and document of each decision; the court from the ECLI first (rule 15)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from types import MappingProxyType
from typing import cast
from urllib.parse import quote, urljoin

from pydantic import Field

from prw_examples.caselaw.reading import DETAIL, DOCUMENT, ROW, document_of, leaves
from prw_sdk.adapter import (
    Adapter,
    AdapterSettings,
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
from prw_sdk.evidence import Capture, Record
from prw_sdk.take import SELLER, json_node, stated, take

_JSON = "application/json"

SURFACES: Mapping[str, Disposition] = MappingProxyType(
    {
        "detail-page": Stored(DETAIL),
        "list-row": Stored(ROW),
        "document": Stored(DOCUMENT),
        "list": Excluded("an index over all decisions; the row of each is asked for by its number"),
        "print-view": Excluded("a rendering of the detail page"),
        "citations": Excluded("which decisions cite this one: computed by the portal from others"),
    }
)

FIELDS: Mapping[str, Disposition] = MappingProxyType(
    {
        "ecli.court": Stored(SELLER),
        "detail.Court": Stored(SELLER),
        "row.court": Stored(SELLER),
        "detail.title": Stored("core:title"),
        "detail.ECLI": Stored("case:ecli"),
        "row.ecli": Stored("case:ecli"),
        "detail.Docket number": Stored("case:docket"),
        "detail.Decided": Stored("case:decided"),
        "row.decided": Stored("case:decided"),
        "detail.Keywords": Stored("case:keywords"),
        "detail.Outcome": Stored("case:outcome"),
        "document.heading": Stored("case:heading"),
        "document.text": Excluded("the decision itself, which is kept whole as a part"),
        "row.number": Excluded("the portal's own number, which the record is known by"),
        "row.url": Excluded("the address of the detail page, which is kept"),
        "detail.Published": Excluded("when the portal took the decision up, which is not its date"),
        "detail.Parties": Excluded(
            "names of persons, which are left to the document (data minimisation)"
        ),
    }
)


class CaseLawSettings(AdapterSettings):
    """Where the portal is."""

    site: str = Field(pattern=r"^https?://[^/\s]+")


class CaseLaw(Adapter):
    """One capture and one record a decision; who decided is `offer:seller`, as who sells is in a shop."""

    name = "caselaw"
    version = "0.1.0"
    settings = CaseLawSettings
    surfaces = SURFACES
    fields = FIELDS
    merchant_field = "ecli.court"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """The portal's list, page by page; new decisions come at its end."""
        site = cast(CaseLawSettings, source.settings).site
        state = {} if checkpoint is None else checkpoint.state
        address: str | None = str(state.get("next") or f"{site}/api/decisions?page=1")
        while address is not None:
            part = await net.get(address, role="list", accept=_JSON)
            page = json_node(part)
            targets = tuple(
                Target(number, urljoin(site, url))
                for row in page.nodes("decisions")
                if (number := row.text("number")) and (url := row.text("url"))
            )
            onward = page.text("next")
            address = None if onward is None else urljoin(part.url_reached, onward)
            yield Batch(targets, Checkpoint({"next": address or ""}))

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """Every response that states something of the decision, and the document that the page links to."""
        detail = await net.get(target.url, role=DETAIL, accept="text/html")
        number = quote(target.native_id, safe="")
        address = urljoin(detail.url_reached, f"/api/decisions?number={number}")
        parts = [detail, await net.get(address, role=ROW, accept=_JSON)]
        document = document_of(detail)
        if document is not None:
            parts.append(await net.get(document, role=DOCUMENT, accept="text/plain"))
        return Fetched(tuple(parts))

    def read(self, capture: Capture) -> Iterable[Record]:
        """The decision; raises `NotARecord` for one that was withdrawn."""
        taken = take(leaves(capture), self.dispositions(capture))
        return (taken.record("decision", capture.native_record_id),)

    def stated(self, capture: Capture) -> Iterable[Stated]:
        """What row, page and document label, and the court that the ECLI names."""
        return stated(leaves(capture))
