"""What stands in the stream: full states, dependencies, pages; and what a late observation may not do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from google.protobuf import json_format

from prw.changes.v1 import change_pb2
from prw_resolver.stream.model import AggregateType, Outcome, Stream
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import NOON, SCOPE, UNTRUSTED, Rooms, record, rooms
from tests.resolver.writing import CATALOG, TENANT, introduction
from tests.support.invariants import assert_stream_holds

STREAM = Stream(TENANT, CATALOG, 1)
HOUR = timedelta(hours=1)


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Rooms]:
    """Rooms over an empty catalogue."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as opened:
        yield opened


async def identify(held: Rooms, subject: NormalisedRecord) -> Outcome:
    """Identify a record as a job of its own."""
    job = f"{subject.capture_id}:identify:0"
    return await held.identifier.identify(subject, held.vocabulary, job_id=job, last=True)


def offer(held: Rooms, name: str, price: str, hours: int, **other: Any) -> NormalisedRecord:
    """A listing's offer as it was seen so many hours after noon."""
    other = {"offer__availability": "in_stock"} | other
    return record(
        held.vocabulary,
        name,
        capture_id=f"cap_{name}_{hours}",
        observed_at=NOON + hours * HOUR,
        core__gtin="G-1",
        offer__price=price,
        **other,
    )


async def events(held: Rooms) -> list[change_pb2.Event]:
    """Every event of the stream, decoded; positions are 1…n (I5)."""
    page = await held.feed.page(STREAM, 0)
    assert [change.position for change in page.changes] == list(range(1, page.cursor_position + 1))
    return [change_pb2.Event.FromString(change.event) for change in page.changes]


async def test_an_event_is_the_full_state_that_was_accepted(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """The bytes decode to what `catalog_revision` holds, for every kind of aggregate."""
    await identify(held, offer(held, "a", "129.90", 0, storage__capacity="1000000000000"))
    await identify(held, offer(held, "b", "99.00", 0, source_id=UNTRUSTED, merchant="Orbit"))
    await held.releases.release_due(SCOPE, held.vocabulary)
    kinds = set()
    for event in await events(held):
        kind = event.WhichOneof("body")
        kinds.add(kind)
        assert event.aggregate.type == change_pb2.AggregateType.Value(
            f"AGGREGATE_TYPE_{str(kind).upper()}"
        )
        row = superuser.execute(
            "select state from catalog_revision where (aggregate_type, aggregate_id, revision) = (%s, %s, %s)",
            (kind, event.aggregate.id, event.revision),
        ).fetchone()
        assert row is not None
        expected = json_format.ParseDict({str(kind): row["state"]}, change_pb2.Event())
        assert getattr(event, str(kind)) == getattr(expected, str(kind))
        assert (event.stream.tenant_id, event.stream.history_epoch) == (TENANT, 1)
    assert kinds == {
        "catalog_item",
        "merchant",
        "listing_mapping",
        "inventory_observation",
        "release",
    }


async def test_an_event_names_the_revisions_that_it_needs(held: Rooms) -> None:
    """A mapping needs its item and merchant, an observation its mapping, a release all that it publishes."""
    await identify(held, offer(held, "a", "129.90", 0))
    await held.releases.release_due(SCOPE, held.vocabulary)
    seen: dict[tuple[int, str], int] = {}
    needs: dict[str, set[str]] = {}
    for event in await events(held):
        for needed in event.dependencies:
            assert seen[needed.aggregate.type, needed.aggregate.id] >= needed.revision
            kind = change_pb2.AggregateType.Name(needed.aggregate.type)
            needs.setdefault(str(event.WhichOneof("body")), set()).add(kind)
        seen[event.aggregate.type, event.aggregate.id] = event.revision
    assert needs == {
        "listing_mapping": {"AGGREGATE_TYPE_CATALOG_ITEM", "AGGREGATE_TYPE_MERCHANT"},
        "inventory_observation": {"AGGREGATE_TYPE_LISTING_MAPPING"},
        "release": {"AGGREGATE_TYPE_CATALOG_ITEM", "AGGREGATE_TYPE_LISTING_MAPPING"},
    }
    assert AggregateType.RELEASE in needs


async def test_a_late_observation_is_history(
    held: Rooms, resolver_database: dict[str, str]
) -> None:
    """Replay rule 8: the newest observation counts, whenever it arrives; an equal one changes nothing."""
    assert await identify(held, offer(held, "a", "10.00", 2)) is Outcome.ACCEPTED
    before = (await held.feed.page(STREAM, 0)).cursor_position
    assert await identify(held, offer(held, "a", "9.00", 1)) is Outcome.HISTORY
    assert (await held.feed.page(STREAM, 0)).cursor_position == before
    assert await identify(held, offer(held, "a", "11.00", 3)) is Outcome.UNCHANGED
    last = (await events(held))[-1].inventory_observation
    assert (last.price.amount, last.price.currency) == ("11.00", "USD")
    assert_stream_holds(resolver_database["superuser"])


async def test_a_word_that_readers_do_not_know_is_not_stated(held: Rooms) -> None:
    """ "In store only" has no name in the contract: the observation says nothing of it, and the record is accepted."""
    subject = offer(held, "a", "10.00", 0, offer__availability="in_store_only")
    assert await identify(held, subject) is Outcome.ACCEPTED
    seen = (await events(held))[-1].inventory_observation
    assert seen.availability == change_pb2.AVAILABILITY_UNSPECIFIED


async def test_the_inbox_row_is_part_of_the_last_records_change(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """A stage that was committed is not done again: the job's command gives its former answer."""
    subject = offer(held, "a", "10.00", 0)
    assert await identify(held, subject) is Outcome.ACCEPTED
    assert await identify(held, subject) is Outcome.ACCEPTED
    rows = superuser.execute("select job_id from job_inbox").fetchall()
    assert [row["job_id"] for row in rows] == [f"{subject.capture_id}:identify:0"]


async def test_pages_follow_each_other_without_a_hole(held: Rooms) -> None:
    """I5: whatever the page's size, each begins where the one before ended."""
    for number in range(5):
        await held.committer.commit(introduction(held.vocabulary, str(number)))
    for size in (1, 4, 15, 100):
        after, seen = 0, []
        while changes := (await held.feed.page(STREAM, after, size)).changes:
            assert len(changes) <= size
            seen += [change.position for change in changes]
            after = changes[-1].position
        assert seen == list(range(1, 16))
