"""What the author of an adapter writes, and what the runner hands to it.

An adapter has two halves. *Collect* (`plan`, `fetch`) runs at the collector and does its I/O through `Net` alone.
*Read* (`read`, `stated`) is plain Python over kept bytes, and runs wherever a capture is: at the collector in local
mode, at the resolver always, and again years later after a parser was mended.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
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


class Kind(StrEnum):
    """What sort of value a source states under a name; a field that changes its kind was re-typed."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    LIST = "list"
    EMPTY = "empty"
    """A list, object or text with nothing in it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stated:
    """One name that the publisher labelled, and the kind of value that stands under it."""

    name: str
    kind: Kind = Kind.UNKNOWN


class Measure(StrEnum):
    """What a bound is about: `RECORDS` read in one run, or the `SHARE` of them (0 to 1) that carry an attribute."""

    RECORDS = "records"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a whole run of a source must come to.

    A breached `minimum` ends the run as failed and nothing of it is sent; a breached `maximum` warns.
    `attribute` is the key that a `SHARE` is of.
    """

    measure: Measure
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    attribute: str | None = None


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
        self, url: str, *, role: str = "page", responses: Mapping[str, str] = NO_RESPONSES
    ) -> tuple[Part, ...]:
        """Open the page in a browser; raises `NetFailed`, also where the collector has no browser.

        The parts: the rendered DOM under `role`, the document as served under ``<role>.source``, a full-page
        screenshot under ``<role>.screenshot``, and for each role of `responses` the page's own answer whose address
        matches that glob (``{"offers": "*/api/offers*"}``), where there was one.
        """
        ...


class NotARecord(Exception):
    """Raised by `read` for a page that is no record of this source; the message says what it is."""


class Adapter(ABC):
    """Base of every adapter. Declarations are validated when the plugin is loaded (`declaration_faults`).

    `surfaces` is total over what the publisher serves for one record, `fields` over what it labels there. A
    field may be a pattern with ``*`` (``review.*``); the exact name wins over patterns, the longest pattern over
    shorter ones.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    settings: ClassVar[type[AdapterSettings]] = AdapterSettings
    surfaces: ClassVar[Mapping[str, Disposition]]
    fields: ClassVar[Mapping[str, Disposition]]
    merchant_field: ClassVar[str]
    """The declared field that names the seller; a literal merchant satisfies no declaration (rule 15)."""
    bounds: ClassVar[tuple[Bound, ...]] = ()
    """What a run of any source of this adapter must come to; a source's settings may add to it."""
    legacy: ClassVar[tuple[str, ...]] = ()
    """Older versions whose captures have another raw shape and are still read; each needs a fixture of that version."""
    uses_browser: ClassVar[bool] = False
    """Whether `fetch` or `plan` calls `net.render`."""

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
    def stated(self, capture: Capture) -> Iterable[str | Stated]:
        """List every name that the publisher labelled, over all parts of the capture.

        With `Stated` the kind of each value is told too, so that a re-typed field is noticed.
        """

    def disposition(self, name: str, config: Mapping[str, object]) -> Disposition | None:
        """How a stated name is accounted for under a capture's `config`; None where no declaration covers it."""
        return _declared(type(self), name)

    def dispositions(self, capture: Capture) -> Callable[[str], Disposition | None]:
        """`disposition` for the names of one capture, as `prw_sdk.take.take` wants it."""
        return lambda name: self.disposition(name, capture.config)

    def config(self, source: Source) -> Mapping[str, object]:
        """What `read` needs of the settings, without secrets; pinned in each capture."""
        pinned: dict[str, object] = {"locale": source.locale}
        if source.currency is not None:
            pinned["currency"] = source.currency
        return pinned


BACKLOG_BASELINE: frozenset[str] = frozenset()
"""The entries (``adapter:surface or field``) that may still be `Backlog`. It only shrinks; nothing is ever added."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_VERSION = re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.-]+)?")
_TARGET = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_.]*")
_PUT_OFF = re.compile(
    r"\b(today|yet|for now|so far|at the moment|todo|tbd|not implemented|not supported)\b"
    r"|^\W*not (read|fetched|stored|kept|parsed|needed|used)\W*$",
    re.IGNORECASE,
)


def matching(fields: Mapping[str, Disposition], name: str) -> Disposition | None:
    """The disposition of a name: declared exactly, else by the longest pattern that covers it, else None."""
    exact = fields.get(name)
    if exact is not None:
        return exact
    covering = [pattern for pattern in fields if "*" in pattern and covers(pattern, name)]
    return fields[max(covering, key=len)] if covering else None


@lru_cache(maxsize=16_384)
def _declared(adapter: type[Adapter], name: str) -> Disposition | None:
    """Kept, since the same few names are asked for on every page."""
    return matching(adapter.fields, name)


def covers(declared: str, name: str) -> bool:
    """Whether a declared field, or pattern with ``*`` (which stands for anything), is about a stated name."""
    return declared == name or ("*" in declared and _pattern(declared).fullmatch(name) is not None)


@lru_cache(maxsize=4096)
def _pattern(declared: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, declared.split("*"))), re.DOTALL)


def declaration_faults(adapter: type[Adapter]) -> tuple[str, ...]:
    """What is wrong with an adapter's declarations, each with what to write instead; empty where all is well."""
    return (
        *_identity_faults(adapter),
        *_half_faults(adapter),
        *_census_faults(adapter),
        *_inventory_faults(adapter),
        *_merchant_faults(adapter),
    )


def _identity_faults(adapter: type[Adapter]) -> Iterator[str]:
    name, version = getattr(adapter, "name", ""), getattr(adapter, "version", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f'no usable name ({name!r}): write name = "lumen-web", in lower case with hyphens'
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        yield f'no usable version ({version!r}): write version = "1.0.0", and raise it when the output of read changes'
    settings = getattr(adapter, "settings", None)
    if not (isinstance(settings, type) and issubclass(settings, AdapterSettings)):
        yield "settings is no subclass of AdapterSettings: write a model of what the adapter can be told"


def _half_faults(adapter: type[Adapter]) -> Iterator[str]:
    missing = sorted(adapter.__abstractmethods__)
    if missing:
        yield f"{', '.join(missing)} missing: write what this adapter does there"
    for half in (adapter.read, adapter.stated):
        if inspect.iscoroutinefunction(half) or inspect.isasyncgenfunction(half):
            yield f"{half.__name__} is async: write a plain function over the capture's bytes, which does no I/O"


def _census_faults(adapter: type[Adapter]) -> Iterator[str]:
    surfaces = getattr(adapter, "surfaces", None)
    if not surfaces:
        yield (
            "no surface census: write surfaces = {...}, with everything that the publisher serves for one record, "
            'each Stored(part="...") or Excluded("what it is, and why it is left out")'
        )
        return
    for name, disposition in surfaces.items():
        yield from _disposition_faults(adapter, f"surface {name!r}", name, disposition)
        if isinstance(disposition, Stored) and not disposition.target.strip():
            yield f'surface {name!r} is stored without a part: write Stored("page"), the role that fetch gives it'


def _inventory_faults(adapter: type[Adapter]) -> Iterator[str]:
    fields = getattr(adapter, "fields", None)
    if not fields:
        yield (
            "no field inventory: write fields = {...}, with every name that the source labels on its stored surfaces, "
            'each Stored("core:mpn") or Excluded("what it is, and why no record carries it")'
        )
        return
    for name, disposition in fields.items():
        yield from _disposition_faults(adapter, f"field {name!r}", name, disposition)
        if isinstance(disposition, Stored) and not _TARGET.fullmatch(disposition.target):
            yield (
                f"field {name!r} is stored under {disposition.target!r}: "
                'write the key of an attribute, such as Stored("core:mpn")'
            )


def _disposition_faults(
    adapter: type[Adapter], what: str, name: str, disposition: object
) -> Iterator[str]:
    if not isinstance(disposition, Stored | Excluded | Backlog):
        yield f"{what} has no disposition ({disposition!r}): write Stored(...) or Excluded(...)"
        return
    if isinstance(disposition, Stored):
        return
    if isinstance(disposition, Backlog) and f"{adapter.name}:{name}" not in BACKLOG_BASELINE:
        yield f"{what} is Backlog, which only an adapter on the committed baseline may use: store it or exclude it"
    if not disposition.reason.strip():
        yield f"{what} has a blank reason: write what it is, and why no record carries it"
    elif isinstance(disposition, Excluded) and _PUT_OFF.search(disposition.reason):
        yield (
            f"{what} is excluded because {disposition.reason!r}, which only puts it off: store it, or write what it "
            "is and why no record carries it (a duplicate of a stored field, derived elsewhere, data minimisation)"
        )


def _merchant_faults(adapter: type[Adapter]) -> Iterator[str]:
    named, fields = getattr(adapter, "merchant_field", None), getattr(adapter, "fields", None) or {}
    if not isinstance(named, str) or not named.strip():
        yield 'no merchant_field: write merchant_field = "...", the field that names the seller (never a literal)'
    elif not isinstance(matching(fields, named), Stored):
        yield f"merchant_field {named!r} is not declared as stored: write it in fields with the target it is kept under"
