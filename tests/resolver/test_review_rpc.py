"""`ReviewService` over real gRPC (if_review_read, if_review_decision)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code
from prw.operator.v1 import review_service_pb2 as pb
from prw_resolver.review.correct import correct
from prw_resolver.stream.model import Outcome
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.calling import Served, refusal, served
from tests.resolver.catalogue import UNTRUSTED, Rooms, record, rooms
from tests.resolver.writing import owner
from tests.support.invariants import assert_stream_holds

ACCEPT = pb.DECISION_ACTION_ACCEPT
CORRECT = pb.DECISION_ACTION_CORRECT
REJECT = pb.DECISION_ACTION_REJECT
DEFER = pb.DECISION_ACTION_DEFER
RETRACT = pb.DECISION_ACTION_RETRACT
UNKNOWN = pb.GetCaseRequest(case_id="case_nowhere")


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Rooms]:
    """Rooms over an empty catalogue."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as opened:
        yield opened


@pytest.fixture
async def server(held: Rooms) -> AsyncIterator[Served]:
    """The services of those rooms."""
    async with served(held) as serving:
        yield serving


@pytest.fixture
async def rita(server: Served) -> Any:
    """A reviewer's stub."""
    return await server.review("reviewer")


async def identify(held: Rooms, subject: NormalisedRecord) -> Outcome:
    """Identify a record as a job of its own."""
    job = f"{subject.capture_id}:identify:0"
    return await held.identifier.identify(subject, held.vocabulary, job_id=job, last=False)


async def open_case(held: Rooms, name: str = "m", **stated: Any) -> None:
    """A case about a listing of the market."""
    stated = {"core__gtin": f"G-{name}", "offer__price": "9.90"} | stated
    stated = {key: text for key, text in stated.items() if text is not None}
    subject = record(held.vocabulary, name, source_id=UNTRUSTED, **stated)
    assert await identify(held, subject) is Outcome.IN_REVIEW


async def only_case(rita: Any) -> Any:
    """The summary of the one case."""
    (summary,) = (await rita.ListCases(pb.ListCasesRequest())).cases
    return summary


def decision(case: Any, action: Any, key: str = "key-1", **other: Any) -> pb.DecideRequest:
    """A decision on the case as it was seen."""
    fields = {
        "case_id": case.case_id,
        "expected_revision": case.revision,
        "action": action,
        "rationale": "it is plain to see",
        "idempotency_key": key,
    } | other
    return pb.DecideRequest(**fields)


async def test_cases_are_listed_page_by_page_oldest_first(held: Rooms, rita: Any) -> None:
    """Every case once, whatever the page's size; filters by status and kind."""
    for number in range(5):
        await open_case(held, f"m{number}")
    seen, token = [], ""
    while True:
        page = await rita.ListCases(pb.ListCasesRequest(page_size=2, page_token=token))
        seen += [case.listing_key for case in page.cases]
        token = page.next_page_token
        if not token:
            break
    assert seen == [f"m{number}" for number in range(5)]
    for filtered, count in (
        (pb.ListCasesRequest(status=pb.CASE_STATUS_AWAITING_HUMAN), 5),
        (pb.ListCasesRequest(status=pb.CASE_STATUS_DECIDED), 0),
        (pb.ListCasesRequest(kind=pb.CASE_KIND_IDENTITY_MAPPING), 5),
        (pb.ListCasesRequest(kind=pb.CASE_KIND_CONFLICT), 0),
    ):
        assert len((await rita.ListCases(filtered)).cases) == count


@pytest.mark.parametrize("token", ["x", "MQ==", "bnVsbA==", "WzEsMl0=", "ä"])
async def test_a_page_token_of_somebodys_making_is_refused(rita: Any, token: str) -> None:
    """VALIDATION_FAILED, never an unexpected error."""
    error = await refusal(rita.ListCases(pb.ListCasesRequest(page_token=token)))
    assert (error.code, error.field) == (Code.VALIDATION_FAILED, "page_token")


async def test_a_case_shows_what_it_rests_on(held: Rooms, server: Served, rita: Any) -> None:
    """Proposal, candidates with what speaks for and against, and quotes with their places; a viewer may read it."""
    introduced = record(held.vocabulary, "shop", core__gtin="G-m", storage__capacity="2000")
    await identify(held, introduced)
    await open_case(held, storage__capacity="1000")
    summary = await only_case(rita)
    assert (summary.reason, summary.candidates) == ("contradiction:storage:capacity", 1)
    vera = await server.review("viewer")
    case = (await vera.GetCase(pb.GetCaseRequest(case_id=summary.case_id))).case
    assert case.summary == summary
    assert {held.attribute: held.value for held in case.proposal}["storage:capacity"] == "1000"
    (candidate,) = case.candidates
    assert list(candidate.disagree) == ["storage:capacity"]
    assert "core:gtin" in candidate.agree
    quotes = {quote.attribute: quote for quote in case.evidence}
    assert quotes["core:gtin"].quote == "G-m"
    assert quotes["core:gtin"].selector == '{"type":"css","value":"h1"}'
    assert list(case.history) == []


async def test_accepting_makes_an_item_and_its_history(
    held: Rooms, rita: Any, resolver_database: dict[str, str]
) -> None:
    """One transaction: decision, item, merchant, mapping and observation; the record's outcome follows."""
    await open_case(held)
    summary = await only_case(rita)
    decided = await rita.Decide(decision(summary, ACCEPT, create_item=True))
    assert (decided.case_revision, decided.replayed, len(decided.event_ids)) == (2, False, 4)
    case = (await rita.GetCase(pb.GetCaseRequest(case_id=summary.case_id))).case
    assert case.summary.status == pb.CASE_STATUS_DECIDED
    (entry,) = case.history
    assert (entry.actor_kind, entry.actor_id, entry.case_revision) == ("person", "rita", 1)
    assert entry.rationale == "it is plain to see"
    assert_stream_holds(resolver_database["superuser"])
    again = record(held.vocabulary, "m", source_id=UNTRUSTED, capture_id="c2", core__gtin="G-m")
    assert await identify(held, again) is Outcome.UNCHANGED


async def test_a_decision_sent_again_is_answered_as_before(held: Rooms, rita: Any) -> None:
    """The same idempotency key and request: the same answer, also at once; another request under it is refused."""
    await open_case(held)
    summary = await only_case(rita)
    request = decision(summary, ACCEPT, create_item=True)
    first, twin = await asyncio.gather(rita.Decide(request), rita.Decide(request))
    again = await rita.Decide(request)
    assert {first.decision_id, twin.decision_id} == {again.decision_id}
    assert again.replayed
    assert list(again.event_ids) == list(first.event_ids)
    other = decision(summary, REJECT)
    assert (await refusal(rita.Decide(other))).code is Code.IDEMPOTENCY_CONFLICT


async def test_a_moved_case_is_refused(held: Rooms, server: Served, rita: Any) -> None:
    """INV-04: STALE_CASE_REVISION for whoever comes second, also at the same time; and nothing is written."""
    await open_case(held)
    summary = await only_case(rita)
    calls = [
        rita.Decide(decision(summary, DEFER, "key-1")),
        rita.Decide(decision(summary, REJECT, "key-2")),
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, pb.DecideResponse) for answer in answers) == 1
    error = await refusal(rita.Decide(decision(summary, ACCEPT, "key-3", create_item=True)))
    assert (error.code, error.field) == (Code.STALE_CASE_REVISION, "expected_revision")
    (entry,) = (await rita.GetCase(pb.GetCaseRequest(case_id=summary.case_id))).case.history
    assert entry.case_revision == 1


async def test_mapping_to_an_item_gives_it_the_records_free_keys(
    held: Rooms, rita: Any, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """But never those of a record that contradicts it: a stale part number does not become its key."""
    await identify(held, record(held.vocabulary, "shop", core__gtin="G-s"))
    waiting = pb.ListCasesRequest(status=pb.CASE_STATUS_AWAITING_HUMAN)
    for name, number_of_keys in (("M", 2), ("M-stale", 2)):
        await open_case(held, name, core__gtin=None, core__brand="b", core__mpn=name)
        (summary,) = (await rita.ListCases(waiting)).cases
        item = superuser.execute("select item_id from catalog_item").fetchone()
        assert item is not None
        await rita.Decide(decision(summary, ACCEPT, name, map_to=item["item_id"]))
        count = superuser.execute("select count(*) as held from catalog_item_key").fetchone()
        assert count is not None
        assert count["held"] == number_of_keys, name


async def test_correcting_reads_the_values_as_the_page_would_be_read(
    held: Rooms, rita: Any
) -> None:
    """The same normalisers; a text that they cannot read, or an attribute nobody published, is refused."""
    await open_case(held, core__gtin=None, core__title="A drive")
    summary = await only_case(rita)
    for corrections in ({"core:gtin": "123"}, {"core:colour": "red"}):
        error = await refusal(
            rita.Decide(decision(summary, CORRECT, create_item=True, corrections=corrections))
        )
        assert (error.code, error.field) == (Code.VALIDATION_FAILED, "corrections")
    corrections = {"core:gtin": "9520000000011", "storage:capacity": "1 TB"}
    await rita.Decide(decision(summary, CORRECT, create_item=True, corrections=corrections))
    shop = record(held.vocabulary, "shop", source_id=UNTRUSTED, core__gtin="09520000000011")
    assert await identify(held, shop) is Outcome.ACCEPTED


async def test_a_corrected_title_and_address_are_the_record_s(held: Rooms) -> None:
    """The item is shown under the title that the person gave it."""
    stated = record(held.vocabulary, "m", source_id=UNTRUSTED, core__title="drvie")
    corrections = {"core:title": "A drive", "core:url": "https://shop.example/drive"}
    corrected = correct(stated, corrections, held.vocabulary)
    assert (corrected.title, corrected.url) == ("A drive", "https://shop.example/drive")
    untouched = correct(stated, {"core:mpn": "AB-1"}, held.vocabulary)
    assert (untouched.title, untouched.url) == (stated.title, stated.url)


@pytest.mark.parametrize(
    ("action", "other"),
    [
        (ACCEPT, {}),
        (ACCEPT, {"create_item": False}),
        (ACCEPT, {"create_item": True, "corrections": {"core:gtin": "1"}}),
        (CORRECT, {"create_item": True}),
        (REJECT, {"create_item": True}),
        (DEFER, {"map_to": "itm_1"}),
        (RETRACT, {}),
        (pb.DECISION_ACTION_SPLIT, {}),
    ],
)
async def test_a_decision_that_makes_no_sense_is_refused(
    held: Rooms, rita: Any, action: Any, other: dict[str, Any]
) -> None:
    """VALIDATION_FAILED; the case is untouched, and the key is still free."""
    await open_case(held)
    summary = await only_case(rita)
    error = await refusal(rita.Decide(decision(summary, action, **other)))
    assert error.code is Code.VALIDATION_FAILED
    assert await only_case(rita) == summary
    await rita.Decide(decision(summary, DEFER))


async def test_a_new_item_needs_free_keys_and_a_target_must_stand(
    held: Rooms, rita: Any, resolver_database: dict[str, str]
) -> None:
    """KEY_TAKEN names the owner; an item that is not there is NOT_FOUND, one that is not active ITEM_NOT_ACTIVE."""
    await identify(held, record(held.vocabulary, "shop", core__gtin="G-m", storage__capacity="2"))
    await open_case(held, storage__capacity="1")
    summary = await only_case(rita)
    taken = await refusal(rita.Decide(decision(summary, ACCEPT, create_item=True)))
    assert taken.code is Code.KEY_TAKEN
    nowhere = await refusal(rita.Decide(decision(summary, ACCEPT, map_to="itm_nowhere")))
    assert (nowhere.code, nowhere.field) == (Code.NOT_FOUND, "map_to")
    with owner(resolver_database) as conn:
        row = conn.execute(
            "update resolver.catalog_item set status = 'retired' returning item_id"
        ).fetchone()
    retired = await refusal(rita.Decide(decision(summary, ACCEPT, map_to=row[0])))
    assert (retired.code, retired.field) == (Code.ITEM_NOT_ACTIVE, "map_to")


async def test_a_rejected_listing_is_not_asked_again(held: Rooms, rita: Any) -> None:
    """The same evidence later: rejected, without a case; other evidence: asked again."""
    await open_case(held)
    await rita.Decide(decision(await only_case(rita), REJECT))
    same = record(held.vocabulary, "m", source_id=UNTRUSTED, capture_id="c2", core__gtin="G-m")
    assert await identify(held, same) is Outcome.REJECTED
    assert len((await rita.ListCases(pb.ListCasesRequest())).cases) == 1
    other = record(held.vocabulary, "m", source_id=UNTRUSTED, capture_id="c3", core__gtin="G-n")
    assert await identify(held, other) is Outcome.IN_REVIEW


async def test_who_may_decide_and_see(held: Rooms, server: Served, rita: Any) -> None:
    """A machine never decides, a viewer reads only, and nobody reaches another tenant's or catalogue's case."""
    await open_case(held)
    summary = await only_case(rita)
    request = decision(summary, REJECT)
    named = pb.GetCaseRequest(case_id=summary.case_id)
    expected = {
        "product": (Code.PERMISSION_DENIED, Code.PERMISSION_DENIED),
        "viewer": (None, Code.FORBIDDEN),
        "stranger": (Code.TENANT_SCOPE_DENIED, Code.TENANT_SCOPE_DENIED),
        "elsewhere": (Code.NOT_FOUND, Code.NOT_FOUND),
        "nobody": (Code.INVALID_TOKEN, Code.INVALID_TOKEN),
    }
    for who, (reading, deciding) in expected.items():
        stub = await server.review(who)
        if reading is not None:
            assert (await refusal(stub.GetCase(named))).code is reading, who
        assert (await refusal(stub.Decide(request))).code is deciding, who
    assert (await refusal(rita.GetCase(UNKNOWN))).code is Code.NOT_FOUND
    stranger = await server.review("stranger")
    assert list((await stranger.ListCases(pb.ListCasesRequest())).cases) == []
    assert await only_case(rita) == summary


async def test_requests_are_checked_before_anything_is_read(rita: Any) -> None:
    """Limits are declared in the proto: no action, no rationale, no key, a revision of nought."""
    sound: dict[str, Any] = {
        "case_id": "case_1",
        "expected_revision": 1,
        "action": REJECT,
        "rationale": "because",
        "idempotency_key": "k",
    }
    for missing in sound:
        request = pb.DecideRequest(**{key: held for key, held in sound.items() if key != missing})
        error = await refusal(rita.Decide(request))
        assert (error.code, error.field) == (Code.VALIDATION_FAILED, missing)
