"""Accounting for what a source states: nothing is passed over, nothing is cried out over twice."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Iterable
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw_base.canonical import canonical_json
from prw_sdk.account import (
    Account,
    Change,
    ChangeKind,
    Profile,
    Tally,
    account,
    breaches,
    changes,
    found_nothing,
)
from prw_sdk.adapter import (
    Adapter,
    Backlog,
    Batch,
    Bound,
    Checkpoint,
    Excluded,
    Fetched,
    Kind,
    Measure,
    Net,
    NotARecord,
    Source,
    Stated,
    Stored,
    Target,
)
from prw_sdk.evidence import AdapterVersion, Capture, Presence, Record
from prw_sdk.take import json_node, stated, take
from tests.sdk.test_take import AT, URL, part

Document = dict[str, Any]


class Shelf(Adapter):
    """One JSON article a page."""

    name, version = "shelf", "1.0.0"
    surfaces: ClassVar = {"page": Stored("page")}
    fields: ClassVar = {
        "sku": Stored("core:sku"),
        "colour": Stored("core:colour"),
        "offers.price": Stored("offer:price"),
        "offers.seller": Stored("offer:seller"),
        "tags": Excluded("the shop's own way of sorting"),
        "note": Backlog("a note"),
    }
    merchant_field = "offers.seller"

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """Plan nothing."""
        yield Batch(())

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """Fetch nothing."""
        return Fetched(())

    def read(self, capture: Capture) -> Iterable[Record]:
        """The article."""
        node = json_node(capture.part("page"))
        if node.text("sku") is None:
            raise NotARecord("no number")
        return [take(node.leaves, self.dispositions(capture)).record("one", URL)]

    def stated(self, capture: Capture) -> Iterable[str | Stated]:
        """Every name."""
        return stated(json_node(capture.part("page")).leaves)


def captured(document: Document, presence: Presence = Presence.PRESENT) -> Capture:
    """The capture of one article."""
    page = part(json.dumps(document), "application/json")
    return Capture(
        "src_a", URL, AT, AdapterVersion("shelf", "1.0.0"), (page,), {}, presence=presence
    )


def records(adapter: Adapter, capture: Capture) -> tuple[Record, ...]:
    """What is read; nothing where there is no record."""
    try:
        return tuple(adapter.read(capture))
    except NotARecord:
        return ()


def profile(documents: Iterable[Document], adapter: Adapter | None = None) -> Profile:
    """The profile of a run over these articles."""
    tally, shelf = Tally(), adapter or Shelf()
    for document in documents:
        capture = captured(document)
        read = records(shelf, capture)
        tally.add(account(shelf, capture, read), read)
    return tally.profile()


def articles(count: int = 20) -> list[Document]:
    """Articles of which every third has a colour, and one a note."""
    return [
        {
            "sku": f"A{n}",
            **({"colour": "red"} if n % 3 == 0 else {}),
            **({"note": "x"} if n == 7 else {}),
            "offers": [{"price": 10.50 + n, "seller": "Lumen"}],
            "tags": ["new"],
        }
        for n in range(count)
    ]


def told(before: list[Document], now: list[Document]) -> list[tuple[ChangeKind, str, str | None]]:
    """What is reported between two runs."""
    return [(one.kind, one.name, one.other) for one in changes(profile(before), profile(now))]


def test_every_stated_name_is_accounted_for_once() -> None:
    """Replay rule 14: stored, excluded (or backlog), unknown; and what is stored but came out of no record."""
    document = {"sku": "A", "offers": {"price": 1}, "tags": [], "note": "n", "size": 3}
    shelf, capture = Shelf(), captured(document)
    found = account(shelf, capture, records(shelf, capture))
    assert (found.stored, found.excluded, found.unknown) == (
        ("sku", "offers.price"),
        ("tags", "note"),
        ("size",),
    )
    assert found.unread == ()
    assert found.kinds["tags"] == {Kind.EMPTY}
    bare = [Record("one", URL, None, ())]
    assert account(shelf, capture, bare).unread == ("sku", "offers.price")


def test_an_absence_counts_for_nothing_and_a_page_without_a_record_counts() -> None:
    """A page that is gone states nothing; one that is there and holds no record does."""
    tally, shelf = Tally(), Shelf()
    gone = captured({}, Presence.ABSENT)
    assert account(shelf, gone, ()) == Account(is_present=False)
    tally.add(account(shelf, gone, ()), ())
    barren = captured({"about": "us"})
    tally.add(account(shelf, barren, ()), ())
    found = tally.profile()
    assert (found.captures, found.barren, found.records, found.unknown) == (1, 1, 0, ("about",))


def test_a_profile_survives_json_and_is_the_sum_of_its_pieces() -> None:
    """It is kept as canonical JSON, and two halves of a run make the whole."""
    whole = profile(articles())
    text = canonical_json(whole.as_json())
    assert Profile.from_json(json.loads(text)) == whole
    halves = profile(articles()[:9]).merged(profile(articles()[9:]))
    assert halves == whole
    assert whole.share("core:colour") == Decimal(7) / 20
    assert Profile().share("core:colour") is None


def test_fifty_unchanged_runs_raise_no_alarm() -> None:
    """The same pages again, each time compared with the last run, in another order."""
    pages, last, choice = articles(), profile(articles()), random.Random(4)
    for _ in range(50):
        choice.shuffle(pages)
        now = profile(pages)
        assert changes(last, now) == ()
        last = now


@pytest.mark.parametrize("seed", range(20))
def test_a_run_over_some_of_the_pages_raises_no_alarm(seed: int) -> None:
    """What few pages state is not missed in a run that read few pages."""
    pages = articles(60)
    some = random.Random(seed).sample(pages, 6)
    assert [one for one in told(pages, some) if one[0] is not ChangeKind.ADDED] == []


def each(change: Callable[[Document], object]) -> list[Document]:
    """All articles, each changed."""
    changed = articles()
    for document in changed:
        change(document)
    return changed


def _rename(document: Document) -> None:
    document["articleNumber"] = document.pop("sku")


def _drop(document: Document) -> None:
    document.pop("colour", None)


def _add(document: Document) -> None:
    document["warranty"] = "2 years"


def _retype(document: Document) -> None:
    document["offers"][0]["price"] = str(document["offers"][0]["price"])


def _wrap(document: Document) -> None:
    document["sku"] = {"value": document["sku"], "scheme": "own"}


def _unwrap(document: Document) -> None:
    document["offers"] = "from 10.50"


def _empty(document: Document) -> None:
    document["offers"] = []


def _silence(document: Document) -> None:
    document["sku"] = None


def _empty_tags(document: Document) -> None:
    document["tags"] = []


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (_rename, [(ChangeKind.RENAMED, "sku", "articleNumber")]),
        (_drop, [(ChangeKind.DROPPED, "colour", None)]),
        (_add, [(ChangeKind.UNKNOWN, "warranty", None)]),
        (_retype, [(ChangeKind.RETYPED, "offers.price", None)]),
        (_wrap, [(ChangeKind.RETYPED, "sku", "sku.scheme")]),
        (_unwrap, [(ChangeKind.RETYPED, "offers.price", "offers")]),
        (_empty, [(ChangeKind.EMPTIED, "offers", None)]),
        (_silence, [(ChangeKind.EMPTIED, "sku", None)]),
        (_empty_tags, [(ChangeKind.EMPTIED, "tags", None)]),
    ],
)
def test_a_change_of_the_source_shows_in_the_run_that_meets_it(
    change: Callable[[Document], object], reported: list[tuple[ChangeKind, str, str | None]]
) -> None:
    """Renamed, dropped, added, re-typed, emptied: each once, and by its name."""
    assert told(articles(), each(change)) == reported


def test_a_known_name_that_comes_is_added() -> None:
    """The declarations cover it, so it is told apart from an unknown one."""
    before = each(_drop)
    assert told(before, articles()) == [(ChangeKind.ADDED, "colour", None)]


def test_a_name_that_most_pages_state_no_more_is_missed() -> None:
    """A source that changes page by page, and few pages whose share only seems to fall."""
    before, now = articles(60), articles(60)
    for document in now[:50]:
        del document["tags"]
    (change,) = changes(profile(before), profile(now))
    assert str(change) == "'tags' dropped: 60 before, 10 now, in most captures"
    assert told(before[:4], [*before[:1], *now[1:2]]) == []


TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
PAGES = st.dictionaries(st.sampled_from(["a", "b", "c", "sku", "offers"]), TEXTS, max_size=4)


@given(PAGES, PAGES)
def test_every_name_that_comes_or_goes_is_told(before: Document, now: Document) -> None:
    """Whatever the shape of the pages; and the same page again tells nothing."""
    then, later = profile([before]), profile([now])
    assert changes(later, later) == ()
    names = {name for one in changes(then, later) for name in (one.name, one.other) if name}
    for name in then.fields.keys() ^ later.fields.keys():
        assert any(
            one == name or one.startswith(f"{name}.") or name.startswith(f"{one}.") for one in names
        ), name


def test_a_first_run_reports_unknown_names_alone() -> None:
    """Nothing can be new to a source that was never read."""
    now = profile(each(_add))
    assert changes(Profile(), now) == (Change(ChangeKind.UNKNOWN, "warranty", None, 0, 20),)


def test_an_attribute_that_is_read_no_more_is_missed_even_where_its_name_still_stands() -> None:
    """A reader that overlooks what it read before."""

    class Overlooking(Shelf):
        def read(self, capture: Capture) -> Iterable[Record]:
            for record in super().read(capture):
                kept = tuple(one for one in record.claims if one.attribute != "offer:price")
                yield Record(record.record_id, record.listing_key, record.merchant, kept)

    (change,) = changes(profile(articles()), profile(articles(), Overlooking()))
    assert (change.kind, change.name) == (ChangeKind.DROPPED, "offer:price")
    assert str(change) == "'offer:price' dropped: 20 before, 0 now, read in no record"


def test_a_source_that_is_another_one_is_compared_in_time() -> None:
    """Hundreds of names go, hundreds come: no pair of each with each is looked for."""
    before = [{f"old{n}": "x" for n in range(3000)}]
    now = [{f"new{n}": "x" for n in range(3000)}]
    assert len(changes(profile(before), profile(now))) == 6000


BOUNDS = (
    Bound(Measure.RECORDS, minimum=Decimal(10), maximum=Decimal(15)),
    Bound(Measure.SHARE, Decimal("0.5"), attribute="core:colour"),
)


def test_a_breached_minimum_is_a_failure_and_a_breached_maximum_is_not() -> None:
    """Each says what it was about, what was found and what was expected."""
    found = breaches(BOUNDS, profile(articles()))
    assert [(one.is_failure, str(one)) for one in found] == [
        (False, "records: 20, where at most 15 was expected"),
        (True, "share with core:colour: 0.35, where at least 0.5 was expected"),
    ]
    assert [str(one) for one in breaches(BOUNDS, Profile())] == [
        "records: 0, where at least 10 was expected"
    ]
    assert breaches(BOUNDS, profile(articles(12)[:1] * 12)) == ()


def test_a_run_that_finds_nothing_where_there_was_something_is_no_success() -> None:
    """Without an earlier run nothing is expected."""
    some = profile(articles())
    assert found_nothing(some, Profile())
    assert not found_nothing(None, Profile())
    assert not found_nothing(Profile(), Profile())
    assert not found_nothing(some, some)
