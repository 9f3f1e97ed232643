"""The pure rules of parking, and of finding gaps."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from prw_product.apply.model import AggregateType, Delivery, Event, Key, Merchant, Need
from prw_product.apply.plan import Known, plan
from prw_product.follow.model import Gap, Waits, find_gaps

_WHEN = datetime(2026, 11, 1, tzinfo=UTC)


def _key(number: int) -> Key:
    return Key(AggregateType.CATALOG_ITEM, str(number))


def _event(position: int, name: int, revision: int, needs: list[tuple[int, int]]) -> Event:
    body = Merchant(str(name), "", "")
    needed = tuple(Need(_key(of), at) for of, at in needs)
    delivery = Delivery(position, _WHEN, b"")
    return Event(delivery, b"", str(position), "t", "c", 1, _key(name), revision, needed, body)


_GRAPHS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(1, 3),
        st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), max_size=3),
    ),
    max_size=14,
).map(lambda graph: [_event(at, *one) for at, one in enumerate(graph, start=1)])


@given(_GRAPHS, st.randoms(use_true_random=False), st.integers(0, 14))
def test_at_rest_nothing_that_waits_could_be_applied(
    events: list[Event], chance: object, cut: int
) -> None:
    """Random graphs, cyclic and with missing ends, in two batches of any order (T6)."""
    chance.shuffle(events)  # type: ignore[attr-defined]  # a random.Random
    first = plan(events[:cut], [], Known({}, frozenset()))
    revisions = {event.key: event.revision for event in first.applied}
    second = plan(events[cut:], first.parked, Known(revisions, frozenset()))
    revisions |= {event.key: event.revision for event in second.applied}
    waiting = [e for e in first.parked if e.position not in second.released] + [*second.parked]
    for event in waiting:
        assert event.revision > revisions.get(event.key, 0)
        assert any(revisions.get(need.key, 0) < need.revision for need in event.needs)
    settled = [*first.applied, *first.stale, *second.applied, *second.stale, *waiting]
    assert sorted(event.position for event in settled) == sorted(e.position for e in events)


@given(_GRAPHS)
def test_an_event_is_applied_after_all_that_it_needs(events: list[Event]) -> None:
    """The order of application respects dependencies, and revisions only grow."""
    revisions: dict[Key, int] = {}
    for event in plan(events, [], Known({}, frozenset())).applied:
        assert all(revisions.get(need.key, 0) >= need.revision for need in event.needs)
        assert event.revision > revisions.get(event.key, 0)
        revisions[event.key] = event.revision


def test_an_exact_need_waits_for_that_very_state() -> None:
    """A release is not met by a newer mapping: it shows the one that it names."""
    listing = Key(AggregateType.LISTING_MAPPING, "lst_1")
    body = Merchant("rel", "", "")
    needs = (Need(listing, 1, exact=True),)
    key = Key(AggregateType.RELEASE, "rel")
    event = Event(Delivery(9, _WHEN, b""), b"", "e", "t", "c", 1, key, 1, needs, body)
    assert plan([event], [], Known({listing: 2}, frozenset())).parked == (event,)
    assert plan([event], [], Known({listing: 2}, frozenset({(listing, 1)}))).applied == (event,)


def test_gaps_are_what_is_missing_between() -> None:
    """Before the first position, and between any two, in whatever order they came."""
    assert find_gaps(3, [8, 5, 6, 5]) == [Gap(3, 4), Gap(7, 7)]
    assert find_gaps(3, [3, 4]) == find_gaps(3, []) == find_gaps(9, [4]) == []


def test_waits_grow_to_a_cap_and_are_never_nothing() -> None:
    """Full jitter below a bound that doubles, for ever."""
    waits = Waits()
    for failures in (1, 2, 10, 10_000):
        assert waits.base * 0.1 <= waits.choose(failures) <= waits.cap
