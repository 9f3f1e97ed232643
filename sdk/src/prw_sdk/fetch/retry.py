"""When to ask again: full jitter, and what the source itself asked for in Retry-After."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from prw_sdk.fetch.outcome import FetchFailed, Recovery

LONGEST = timedelta(hours=24)
_SECONDS = re.compile(r"-?[0-9]+")
_MOST_DIGITS = 9


def retry_after(values: Sequence[str], now: datetime) -> timedelta | None:
    """The wait that Retry-After headers ask for (seconds or an HTTP date, RFC 9110 section 10.2.3).

    Never negative and never beyond a day; the longest where there are several; None where there is none or none
    makes sense.
    """
    waits = [wait for value in values if (wait := _wait(value.strip(), now)) is not None]
    return max(waits, default=None)


def _wait(text: str, now: datetime) -> timedelta | None:
    if _SECONDS.fullmatch(text):
        # as many digits as make sure that it is beyond the longest
        return timedelta() if text.startswith("-") else _within(int(text[:_MOST_DIGITS]))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return _within((at - now).total_seconds())


def _within(seconds: float) -> timedelta:
    return min(max(timedelta(seconds=seconds), timedelta()), LONGEST)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts for one GET, backoff in seconds, and the longest wait (seconds) taken inside a run.

    What asks for a longer wait than `patience` is put off to a later run instead.
    """

    attempts: int = 4
    base: float = 1.0
    cap: float = 30.0
    patience: float = 60.0


class Backoff:
    """Says for each failure of one GET how long to wait, or that asking again is no use (False)."""

    def __init__(
        self, policy: RetryPolicy, jitter: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._policy = policy
        self._jitter = jitter
        self._failures = 0

    def __call__(self, error: Exception) -> float | bool:
        """Seconds to wait after this failure, or False to give up."""
        if not isinstance(error, FetchFailed) or error.recovery is not Recovery.RETRY:
            return False
        window = min(self._policy.cap, self._policy.base * 2**self._failures)
        self._failures += 1
        asked = 0.0 if error.retry_after is None else error.retry_after.total_seconds()
        wait = max(self._jitter(0.0, window), asked)
        return wait if wait <= self._policy.patience else False
