"""Backoff and Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery, of_status
from prw_sdk.fetch.retry import LONGEST, Backoff, RetryPolicy, retry_after

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        (None, None),
        ("120", timedelta(seconds=120)),
        (" 0 ", timedelta()),
        ("-5", timedelta()),
        ("999999999999999999999", LONGEST),
        ("Mon, 30 Nov 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Mon, 30 Nov 2026 11:00:00 GMT", timedelta()),
        ("Fri, 30 Nov 2096 11:00:00 GMT", LONGEST),
        ("Monday, 30-Nov-26 12:01:00 GMT", timedelta(minutes=1)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", timedelta()),
        ("Friday, 30-Nov-68 08:49:37 GMT", LONGEST),
        ("Saturday, 30-Nov-79 08:49:37 GMT", timedelta()),
        ("Mon Nov 30 12:01:00 2026", timedelta(minutes=1)),
        ("Mon Nov  2 12:01:00 2026", timedelta()),
        ("Mon, 30 Nov 2026 13:01:00 +0100", timedelta(minutes=1)),
        ("Mon, 30 Nov 2026 25:99:00 GMT", None),
        ("Mon, 30 Nov 0001 00:00:00 +2359", timedelta()),
        ("Fri, 31 Dec 9999 23:59:59 -2359", LONGEST),
        ("-999999999999999999999999", timedelta()),
        ("soon", None),
        ("", None),
        ("1.5", None),
    ],
)
def test_retry_after_is_read_in_both_its_forms_and_kept_in_bounds(
    value: str | None, wait: timedelta | None
) -> None:
    """Seconds or an HTTP date; never negative, never beyond a day (RFC 9110, section 10.2.3)."""
    assert retry_after(() if value is None else (value,), NOW) == wait


def test_of_several_waits_the_longest_is_kept() -> None:
    """Proxies add theirs to the source's; one that makes no sense is none."""
    assert retry_after(("5", "Mon, 30 Nov 2026 12:01:00 GMT", "soon"), NOW) == timedelta(minutes=1)


@given(st.text(max_size=40))
def test_no_retry_after_breaks_the_fetch(value: str) -> None:
    """Whatever a server writes there."""
    wait = retry_after((value,), NOW)
    assert wait is None or timedelta() <= wait <= LONGEST


def failed(outcome: Outcome = Outcome.UPSTREAM, wait: float | None = None) -> FetchFailed:
    """A failed fetch."""
    asked = None if wait is None else timedelta(seconds=wait)
    return FetchFailed(outcome, "x", url="http://a.example/", retry_after=asked)


def test_the_window_of_the_jitter_doubles_up_to_its_cap() -> None:
    """Full jitter: anything between nothing and the window."""
    windows: list[tuple[float, float]] = []

    def widest(low: float, high: float) -> float:
        windows.append((low, high))
        return high

    backoff = Backoff(RetryPolicy(base=1, cap=5, patience=60), widest)
    assert [backoff(failed()) for _ in range(4)] == [1, 2, 4, 5]
    assert windows == [(0, 1), (0, 2), (0, 4), (0, 5)]


def test_what_the_source_asked_for_is_the_least() -> None:
    """Up to the patience of the run, beyond which the call gives up."""
    backoff = Backoff(RetryPolicy(base=1, cap=5, patience=60), lambda low, high: low)
    assert backoff(failed(wait=7)) == 7
    assert backoff(failed(wait=61)) is False


def test_only_passing_troubles_are_asked_again() -> None:
    """What another attempt cannot change is not attempted."""
    backoff = Backoff(RetryPolicy())
    assert backoff(failed(Outcome.ROBOTS_FORBIDDEN)) is False
    assert backoff(ValueError()) is False


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status_is_classified(status: int) -> None:
    """2xx is evidence, 404 and 410 absence, 408, 429 and 5xx pass, the rest is refused."""
    outcome = of_status(status)
    if 200 <= status < 300 and status != 206:
        assert outcome is None
    elif status in (404, 410):
        assert outcome is not None
        assert outcome.recovery is Recovery.ABSENT
    else:
        assert outcome is not None
        passing = status in (206, 408, 429) or status >= 500
        assert (outcome.recovery is Recovery.RETRY) == passing
