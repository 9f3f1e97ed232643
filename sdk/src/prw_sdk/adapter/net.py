"""What the collecting half is given and gives: a source, its plan, and the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from prw_sdk.adapter.declare import AdapterSettings
from prw_sdk.evidence import Part


@dataclass(frozen=True, slots=True)
class Source:
    """What the collector's settings say of one source.

    `locale` (BCP 47 or POSIX, such as ``de_DE``) and `currency` (ISO 4217) are hints about the market; the region
    that a collector runs in is not. `settings` is already validated by the adapter's own model.
    """

    source_id: str
    settings: AdapterSettings
    locale: str = "en_US"
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fetch: `native_id` is stable in the source and known before anything is read."""

    native_id: str
    url: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a plan had come, in the adapter's own words (JSON values only), for one partition of a source."""

    state: Mapping[str, object]
    partition: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Targets that belong together, and the checkpoint that holds once each of them is terminal or put off."""

    targets: tuple[Target, ...]
    then: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """All the responses of one target, in the order in which they were asked for."""

    parts: tuple[Part, ...]


NO_RESPONSES: Mapping[str, str] = MappingProxyType({})
"""No answers of the page's own are asked for."""


class NetFailed(Exception):
    """A GET that gave no usable answer. `status` is the source's HTTP status, None where it gave none.

    An adapter catches it only where the plan can go on without the answer; the runner handles every other one.
    """

    status: int | None = None


class Net(Protocol):
    """All the network an adapter has. Limits, retries, robots rules and address guard are in here."""

    async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
        """Fetch with GET and return the complete response as a part; raises `NetFailed`."""
        ...

    async def render(
        self,
        url: str,
        *,
        role: str = "page",
        responses: Mapping[str, str] = NO_RESPONSES,
        wait_for: str | None = None,
    ) -> tuple[Part, ...]:
        """Open the page in a browser; raises `NetFailed`, also where the collector has no browser.

        The parts: the rendered DOM under `role`, the document as served under ``<role>.source``, a full-page
        screenshot under ``<role>.screenshot``, and for each role of `responses` the page's own answer whose address
        matches that glob (``{"offers": "*/api/offers*"}``), where there was one. `wait_for` is a CSS selector that the
        page must come to show; name what a page without the record shows as well (``h1.product, .not-found``).
        """
        ...
