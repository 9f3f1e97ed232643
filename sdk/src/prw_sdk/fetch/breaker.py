"""A circuit breaker: a source in trouble is left alone for a while instead of being asked for every page of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from prw_sdk.fetch.outcome import Outcome

OF_THE_HOST = frozenset(
    {
        Outcome.NETWORK,
        Outcome.TIMEOUT,
        Outcome.UPSTREAM,
        Outcome.RATE_LIMITED,
        Outcome.BOT_CHALLENGE,
    }
)
"""Endings that are about the source as a whole rather than about one page of it."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Failures in a row after which a source is left alone (0 for never), and for how many seconds."""

    failures: int = 20
    cool_down: float = 60.0


class CircuitOpen(Exception):
    """The source is left alone; `seconds` are left until it is tried again."""

    def __init__(self, seconds: float, failures: int) -> None:
        super().__init__(f"the source failed {failures} times in a row and is left alone for now")
        self.seconds = seconds


class Breaker:
    """Counts failures in a row. Once open it lets nothing through; after the cool-down one page is tried."""

    def __init__(self, policy: BreakerPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    def enter(self) -> bool:
        """Begin a page; whether it is the one that tries the source again. Raises `CircuitOpen`.

        Every page begun is ended by one of the other three.
        """
        if self._opened_at is None:
            return False
        left = self._opened_at + self._policy.cool_down - self._clock()
        if left > 0 or self._probing:
            raise CircuitOpen(max(left, 1.0), self._failures)
        self._probing = True
        return True

    def succeeded(self) -> None:
        """The source answered, whatever it said about the page."""
        self._failures, self._opened_at, self._probing = 0, None, False

    def failed(self) -> None:
        """The source gave no answer of its own."""
        self._failures += 1
        self._probing = False
        if 0 < self._policy.failures <= self._failures:
            self._opened_at = self._clock()

    def gave_up(self, is_probe: bool) -> None:
        """The page ended without a word about the source (it was stopped, or its turn never came)."""
        if is_probe:
            self._probing = False
