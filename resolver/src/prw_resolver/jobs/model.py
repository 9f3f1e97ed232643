"""What a job is, which stages it walks, and what becomes of a stage that fails (if_resolution_job)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from random import SystemRandom
from typing import Final

from prw_base.backoff import longest_wait

QUEUE: Final = "resolve"
"""The queue, and the name of the only task in it: one job walks one capture through all its stages."""

MOST_FAILURES: Final = 5
"""So many failures of one stage make a dead letter."""

_JITTER = SystemRandom()


class Stage(StrEnum):
    """The stages of a capture, in their order."""

    EXTRACT = "extract"
    NORMALISE = "normalise"
    IDENTIFY = "identify"


class BadJob(ValueError):
    """A row of the queue that is no resolution job; the message says what is wrong."""


def as_text(words: str, longest: int = 2000) -> str:
    """Words of foreign code as the database takes them: no NUL, no lone surrogates, not longer than that."""
    clean = words.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
    return clean[:longest]


def stage_job_id(capture_id: str, stage: Stage, attempt_group: int) -> str:
    """The id under which a stage's results are deduplicated: ``capture:stage:attempt_group``."""
    return f"{capture_id}:{stage}:{attempt_group}"


@dataclass(frozen=True, slots=True)
class ResolveJob:
    """A capture to be walked through its stages; ids were copied from the committed capture row."""

    tenant_id: str
    catalog_id: str
    capture_id: str
    attempt_group: int = 0

    @classmethod
    def parse(cls, arguments: Mapping[str, object]) -> ResolveJob:
        """Read the arguments of a queue's row; raises `BadJob` where one is missing or of another type."""
        ids = [arguments.get(name) for name in ("tenant_id", "catalog_id", "capture_id")]
        group = arguments.get("attempt_group")
        if not isinstance(group, int) or group < 0:
            raise BadJob("attempt_group is no number from 0 on")
        match [held for held in ids if isinstance(held, str) and held]:
            case [tenant_id, catalog_id, capture_id]:
                return cls(tenant_id, catalog_id, capture_id, group)
        raise BadJob("tenant_id, catalog_id or capture_id is missing")

    def stage_id(self, stage: Stage) -> str:
        """The job id of one of its stages."""
        return stage_job_id(self.capture_id, stage, self.attempt_group)


@dataclass(frozen=True, slots=True)
class StageState:
    """How far a capture has come: the stages done, and the code of its dead letter where it has one."""

    done: frozenset[Stage] = frozenset()
    dead_code: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a stage failed. `retryable` says whether the same job may succeed later."""

    stage: Stage
    code: str
    detail: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A stage that failed for good and that nobody has taken up again."""

    tenant_id: str
    catalog_id: str
    capture_id: str
    attempt_group: int
    stage: Stage
    failures: int
    code: str
    detail: str
    dead_at: datetime


def backoff(failures: int, base: timedelta, cap: timedelta = timedelta(minutes=5)) -> timedelta:
    """How long to wait after that many failures: exponential, between a quarter of the step and all of it."""
    return longest_wait(failures, base, cap) * _JITTER.uniform(0.25, 1.0)
