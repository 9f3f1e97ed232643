"""A source that no longer serves an accepted listing: a person is asked, and what is public follows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code, PrwError
from prw_resolver.catalog.acceptance import record_listing_id
from prw_resolver.identity.retraction import REASON, Absence
from prw_resolver.review.decide import Request
from prw_resolver.review.model import CaseKind, CaseStatus
from prw_resolver.stream.model import Action, Outcome
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import NOON, SCOPE, TRUSTED, Rooms, record, rooms
from tests.support.invariants import assert_stream_holds

HOUR = timedelta(hours=1)
TARGET = "https://shop.example/p/1"


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Rooms]:
    """A page with two sellers, both accepted as one item, and a listing of another page."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as opened:
        for key in (f"{TARGET}#one", f"{TARGET}#two", "https://shop.example/p/11"):
            assert await identify(opened, offer(opened, key)) is Outcome.ACCEPTED
        await opened.releases.release_due(SCOPE, opened.vocabulary)
        yield opened


def offer(held: Rooms, key: str, hours: int = 0, price: str = "9.90") -> NormalisedRecord:
    """What a listing offers, seen so many hours after noon."""
    return record(
        held.vocabulary,
        key,
        capture_id=f"cap_{key[-3:]}_{hours}",
        observed_at=NOON + hours * HOUR,
        core__gtin="G-1",
        offer__price=price,
    )


async def identify(held: Rooms, subject: NormalisedRecord) -> Outcome:
    """Identify a record as a job of its own."""
    job = f"{subject.capture_id}:identify:0"
    return await held.identifier.identify(subject, held.vocabulary, job_id=job, last=True)


async def absent(held: Rooms, hours: int, target: str = TARGET) -> tuple[Outcome, ...]:
    """An absence of the target, observed so many hours after noon."""
    absence = Absence(SCOPE, TRUSTED, target, f"gone_{hours}", NOON + hours * HOUR)
    job = f"gone_{hours}:identify:0"
    return await held.identifier.absent(absence, held.vocabulary, job_id=job)


async def decide(held: Rooms, action: Action, number: int = 0) -> None:
    """Decide one of the open cases."""
    waiting = await held.review.cases(SCOPE, status=CaseStatus.AWAITING_HUMAN)
    case = waiting[number]
    asked = Request(case.case_id, case.revision, action, "seen by hand", f"key-{case.case_id}")
    await held.review.decide(SCOPE, "anna", asked)


def mapped(superuser: psycopg.Connection[dict[str, Any]], status: str) -> set[str]:
    """The keys of the listings whose mapping stands so."""
    query = "select listing_key from listing_mapping where status = %s"
    return {row["listing_key"] for row in superuser.execute(query, (status,)).fetchall()}


def outcomes(superuser: psycopg.Connection[dict[str, Any]], capture_id: str) -> list[str]:
    """What became of the records of a capture."""
    query = "select outcome from record_outcome where capture_id = %s order by record_id"
    return [row["outcome"] for row in superuser.execute(query, (capture_id,)).fetchall()]


async def test_each_accepted_listing_of_the_page_is_asked_about(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """A case of kind retraction with the mapping's own evidence; listings of other pages are not touched."""
    assert await absent(held, 1) == (Outcome.IN_REVIEW, Outcome.IN_REVIEW)
    cases = await held.review.cases(SCOPE)
    assert {case.listing_key for case in cases} == {f"{TARGET}#one", f"{TARGET}#two"}
    for case in cases:
        assert (case.kind, case.reason) == (CaseKind.RETRACTION, REASON)
        assert case.record.capture_id == "gone_1"
        row = superuser.execute(
            "select evidence from listing_mapping where listing_id = %s", (case.listing_id,)
        ).fetchone()
        assert row is not None
        assert [quote.quote for quote in case.evidence] == [
            quote["quote"] for quote in row["evidence"]
        ]
        assert len(case.candidates) == 1
    assert outcomes(superuser, "gone_1") == ["in_review", "in_review"]
    assert len(mapped(superuser, "active")) == 3
    inbox = superuser.execute("select from job_inbox where job_id = 'gone_1:identify:0'").fetchall()
    assert len(inbox) == 1


async def test_retracting_takes_the_listing_out_of_what_is_public(
    held: Rooms,
    superuser: psycopg.Connection[dict[str, Any]],
    resolver_database: dict[str, str],
) -> None:
    """The mapping is retracted by the person's decision, and the release follows."""
    await absent(held, 1)
    await decide(held, Action.RETRACT)
    assert len(mapped(superuser, "retracted")) == 1
    assert "retraction" in outcomes(superuser, "gone_1")
    await held.releases.release_due(SCOPE, held.vocabulary)
    row = superuser.execute("select content from release").fetchone()
    assert row is not None
    assert len(row["content"]["listings"]) == 2
    await decide(held, Action.RETRACT)
    await held.releases.release_due(SCOPE, held.vocabulary)
    assert mapped(superuser, "active") == {"https://shop.example/p/11"}
    assert_stream_holds(resolver_database["superuser"])


async def test_an_item_without_listings_is_released_without(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """The last one gone leaves an item that is public with nobody who sells it."""
    await absent(held, 1)
    await absent(held, 2, "https://shop.example/p/11")
    for _ in range(3):
        await decide(held, Action.RETRACT)
    await held.releases.release_due(SCOPE, held.vocabulary)
    row = superuser.execute("select content from release").fetchone()
    assert row is not None
    assert (row["content"]["listings"], row["content"]["title"]) == ([], f"SSD {TARGET}#one")


async def test_a_job_done_again_asks_nothing_twice(held: Rooms) -> None:
    """Its commands give their former answers; a later absence finds the question already open."""
    await absent(held, 1)
    assert await absent(held, 1) == (Outcome.IN_REVIEW, Outcome.IN_REVIEW)
    assert await absent(held, 2) == (Outcome.IN_REVIEW, Outcome.IN_REVIEW)
    cases = await held.review.cases(SCOPE)
    assert [(case.revision, case.kind) for case in cases] == [(1, CaseKind.RETRACTION)] * 2


async def test_a_target_that_nothing_was_accepted_from_asks_nobody(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """The stage is done all the same. A page whose address only begins alike is another page."""
    assert await absent(held, 1, "https://shop.example/p") == ()
    assert await held.review.cases(SCOPE) == []
    inbox = superuser.execute("select from job_inbox where job_id = 'gone_1:identify:0'").fetchall()
    assert len(inbox) == 1


async def test_a_late_absence_is_history(held: Rooms) -> None:
    """Replay rule 8: the listing was seen later."""
    await identify(held, offer(held, f"{TARGET}#one", 2, "8.00"))
    assert await absent(held, 1) == (Outcome.HISTORY, Outcome.IN_REVIEW)


async def test_a_listing_that_came_back_is_no_longer_asked_about(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """A newer record supersedes the case; an older one is history."""
    await absent(held, 2)
    assert await identify(held, offer(held, f"{TARGET}#one", 1, "8.00")) is Outcome.HISTORY
    assert await identify(held, offer(held, f"{TARGET}#one", 3, "7.00")) is Outcome.UNCHANGED
    statuses = {case.listing_key[-3:]: case.status for case in await held.review.cases(SCOPE)}
    assert statuses == {"one": CaseStatus.SUPERSEDED, "two": CaseStatus.AWAITING_HUMAN}
    assert outcomes(superuser, "gone_2").count("history") == 1


async def test_a_retracted_listing_that_comes_back_is_accepted_again(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]], resolver_database: dict[str, str]
) -> None:
    """Its mapping becomes active under a new revision, by a decision of the rule."""
    await absent(held, 1)
    await decide(held, Action.RETRACT)
    await decide(held, Action.RETRACT)
    assert await identify(held, offer(held, f"{TARGET}#one", 2)) is Outcome.ACCEPTED
    assert f"{TARGET}#one" in mapped(superuser, "active")
    row = superuser.execute(
        "select revision from listing_mapping where listing_key = %s", (f"{TARGET}#one",)
    ).fetchone()
    assert row == {"revision": 3}
    assert_stream_holds(resolver_database["superuser"])


async def test_a_rejected_retraction_is_asked_again_only_when_the_listing_was_seen_since(
    held: Rooms,
) -> None:
    """A settled question; and it settles nothing of what the listing is."""
    await absent(held, 1)
    await decide(held, Action.REJECT)
    await decide(held, Action.REJECT)
    assert await absent(held, 2) == (Outcome.REJECTED, Outcome.REJECTED)
    assert await identify(held, offer(held, f"{TARGET}#one", 3, "7.00")) is Outcome.UNCHANGED
    assert await absent(held, 4) == (Outcome.IN_REVIEW, Outcome.REJECTED)


async def test_a_settled_identity_outlives_a_rejected_retraction(held: Rooms) -> None:
    """That the page is not gone is no word on which item it is: the former word still stands."""
    stated: dict[str, Any] = {"core__brand": "b", "core__gtin": "G-1", "storage__capacity": "5"}
    key = "https://shop.example/p/2"
    odd = record(held.vocabulary, key, capture_id="c-odd", **stated)
    other = record(held.vocabulary, "x", core__gtin="G-1", storage__capacity="6", capture_id="cx")
    await identify(held, other)
    assert await identify(held, odd) is Outcome.IN_REVIEW
    (case,) = await held.review.cases(SCOPE)
    map_to = case.candidates[0].item_id
    asked = Request(case.case_id, case.revision, Action.ACCEPT, "same", "key-map", map_to=map_to)
    await held.review.decide(SCOPE, "anna", asked)
    await absent(held, 1, key)
    await decide(held, Action.REJECT)
    again = record(
        held.vocabulary, key, capture_id="c-again", observed_at=NOON + 2 * HOUR, **stated
    )
    assert await identify(held, again) is Outcome.UNCHANGED


async def test_a_listing_that_is_gone_is_no_longer_asked_about_otherwise(held: Rooms) -> None:
    """One open question a listing: its absence takes the place of a conflict, and only retract answers it."""
    key = f"{TARGET}#one"
    conflict = record(
        held.vocabulary, key, capture_id="c-conflict", observed_at=NOON + HOUR, core__gtin="G-9"
    )
    assert await identify(held, conflict) is Outcome.IN_REVIEW
    await absent(held, 2)
    cases = {case.listing_id: case for case in await held.review.cases(SCOPE)}
    case = cases[record_listing_id(conflict)]
    assert (case.kind, case.revision) == (CaseKind.RETRACTION, 2)
    asked = Request(case.case_id, 2, Action.ACCEPT, "no", "key-a", create_item=True)
    with pytest.raises(PrwError) as refused:
        await held.review.decide(SCOPE, "anna", asked)
    assert refused.value.code is Code.VALIDATION_FAILED
