"""How a worker works: times, limits, numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker works. All times are of its own clock."""

    concurrency: int = 4
    """Jobs worked at once in this process."""
    poll: timedelta = timedelta(milliseconds=250)
    """How often the queue is looked at while nothing wakes the worker: a lost wake-up costs no more."""
    heartbeat: timedelta = timedelta(seconds=1)
    """How often the worker says that it lives."""
    lost_after: timedelta = timedelta(seconds=10)
    """After so long a silence the jobs of a worker are given to others."""
    repair_every: timedelta = timedelta(seconds=30)
    """How often captures without a live job are looked for."""
    repair_age: timedelta = timedelta(seconds=60)
    """Captures younger than this are never repaired: their job may just be on its way."""
    job_limit: timedelta = timedelta(seconds=60)
    """The longest that one delivery of a job may take (if_resolution_job)."""
    retry_base: timedelta = timedelta(seconds=2)
    """The first step of the backoff between failures."""
    drain_limit: timedelta = timedelta(seconds=30)
    """How long a stopping worker lets its jobs go on."""
    follow_ups: int = 50
    """How much follow-up work is done in one go."""
