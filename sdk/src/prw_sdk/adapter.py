"""What the author of an adapter writes, and what the runner hands to it.

An adapter has two halves. *Collect* (`plan`, `fetch`) runs at the collector and does its I/O through `Net` alone.
*Read* (`read`, `stated`) is plain Python over kept bytes, and runs wherever a capture is: at the collector in local
mode, at the resolver always, and again years later after a parser was mended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from prw_sdk.evidence import Capture, Part, Record


class AdapterSettings(BaseModel):
    """Base of an adapter's typed settings. Unknown names are refused, so that a typing error is no silent default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class Stored:
    """A surface kept as the part of that role, or a field kept under that target (an attribute's key)."""

    target: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """A surface or field left out on purpose. The reason says what it is and why no row carries it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """Known and not stored yet: only for adapters on the committed baseline, which only shrinks."""

    reason: str


Disposition = Stored | Excluded | Backlog


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


class Net(Protocol):
    """All the network an adapter has. Limits, retries, robots rules and address guard are in here."""

    async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
        """Fetch with GET and return the response as a part; raises `prw_sdk.fetch.outcome.FetchFailed`."""
        ...


class NotARecord(Exception):
    """Raised by `read` for a page that is no record of this source; the message says what it is."""


class Adapter(ABC):
    """Base of every adapter. Declarations are validated when the plugin is loaded."""

    name: ClassVar[str]
    version: ClassVar[str]
    settings: ClassVar[type[AdapterSettings]] = AdapterSettings
    surfaces: ClassVar[Mapping[str, Disposition]]
    fields: ClassVar[Mapping[str, Disposition]]
    merchant_field: ClassVar[str]
    """The declared field that names the seller; a literal merchant satisfies no declaration (rule 15)."""

    @abstractmethod
    def plan(self, source: Source, checkpoint: Checkpoint | None, net: Net) -> AsyncIterator[Batch]:
        """Say what there is, in batches."""

    @abstractmethod
    async def fetch(self, target: Target, net: Net) -> Fetched:
        """Fetch one target: every response it needs, each named by its role."""

    @abstractmethod
    def read(self, capture: Capture) -> Iterable[Record]:
        """Read the records of a capture, without I/O; raises `NotARecord` where it holds none."""

    @abstractmethod
    def stated(self, capture: Capture) -> Iterable[str]:
        """List every name that the publisher labelled, over all parts of the capture."""

    def config(self, source: Source) -> Mapping[str, object]:
        """What `read` needs of the settings, without secrets; pinned in each capture."""
        pinned: dict[str, object] = {"locale": source.locale}
        if source.currency is not None:
            pinned["currency"] = source.currency
        return pinned
