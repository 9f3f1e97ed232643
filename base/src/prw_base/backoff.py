"""Exponential backoff: the bound of the wait before something is tried again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_MOST_DOUBLINGS: Final = 16


def longest_wait(failures: int, base: timedelta, cap: timedelta) -> timedelta:
    """The longest wait after so many ``failures`` in a row, from 1: ``base``, doubled each time, at most ``cap``."""
    doublings = min(max(failures - 1, 0), _MOST_DOUBLINGS)
    return min(cap, base * (1 << doublings))
