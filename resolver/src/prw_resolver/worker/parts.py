"""What a worker works with, and the two questions that it puts to identity."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from prw_base.server.database import Database
from prw_resolver.extraction.pool import ReaderPool
from prw_resolver.identity.retraction import Absence
from prw_resolver.objects.port import ObjectStore
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord
from prw_resolver.worker.model import WorkerSettings

FollowUp = Callable[[int], Awaitable[int]]
"""Does at most so much of the work that earlier work left behind; answers how much it did."""


class Identify(Protocol):
    """Decides one record; the last one's change carries the stage's inbox row. Safe to be called again."""

    def __call__(
        self, record: NormalisedRecord, vocabulary: Vocabulary, *, job_id: str, last: bool
    ) -> Awaitable[object]:
        """Decide the record; raises PrwError."""
        ...


class Absent(Protocol):
    """Asks what is to become of listings whose page is gone; its last change carries the stage's inbox row."""

    def __call__(
        self, absence: Absence, vocabulary: Vocabulary, *, job_id: str
    ) -> Awaitable[object]:
        """Ask about each of them; raises PrwError. Safe to be called again."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What a worker works with; `bootstrap` fills in what is decided above it."""

    db: Database
    objects: ObjectStore
    readers: ReaderPool
    identify: Identify
    absent: Absent
    follow_ups: tuple[FollowUp, ...] = ()
    settings: WorkerSettings = WorkerSettings()
