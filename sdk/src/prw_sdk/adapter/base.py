"""The class that every adapter derives from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import lru_cache
from typing import ClassVar

from prw_sdk.adapter.declare import AdapterSettings, Bound, Disposition, Stated, matching
from prw_sdk.adapter.net import Batch, Checkpoint, Fetched, Net, Source, Target
from prw_sdk.evidence import Capture, Record


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
    lists_everything: ClassVar[bool] = False
    """Whether a plan that went to its end has named everything that the source has.

    What earlier runs stored and such a plan names no more is asked for once more, so that the source itself says that
    it is gone.
    """
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


@lru_cache(maxsize=16_384)
def _declared(adapter: type[Adapter], name: str) -> Disposition | None:
    """Kept, since the same few names are asked for on every page."""
    return matching(adapter.fields, name)
