"""A page of the stream is bounded by its bytes as well as by its count."""

from __future__ import annotations

from prw_resolver.stream.model import Page, StoredChange
from prw_resolver.stream.service import PAGE_BYTES, _bounded
from tests.support.pages import NOON


def page(*sizes: int) -> Page:
    """A page of events of these lengths."""
    changes = tuple(StoredChange(number, NOON, b"x" * size) for number, size in enumerate(sizes, 1))
    return Page(changes, len(changes), 0)


def test_a_page_ends_before_it_outgrows_a_message() -> None:
    """What does not fit comes with the next page, since a reader goes on from the last position it got."""
    half = PAGE_BYTES // 2
    assert [change.position for change in _bounded(page(half, half, 1)).changes] == [1, 2]


def test_a_change_too_large_for_a_page_still_comes_alone() -> None:
    """A stream never stops at a large change."""
    assert len(_bounded(page(PAGE_BYTES + 1, 1)).changes) == 1


def test_an_empty_page_stays_empty() -> None:
    """The end of the stream is no failure."""
    assert _bounded(page()).changes == ()
