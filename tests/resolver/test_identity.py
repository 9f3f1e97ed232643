"""Identity by rule, over the real database: state.md, "Identity"."""

from __future__ import annotations

from pathlib import Path

from prw_resolver.stream.model import Outcome
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import SCOPE, UNTRUSTED, Rooms, record, rooms

GTIN_HS, GTIN_PLAIN = "09520000000011", "09520000000028"


async def identify(held: Rooms, subject: NormalisedRecord, job: str = "job") -> Outcome:
    """Identify a record as a job of its own."""
    return await held.identifier.identify(
        subject, held.vocabulary, job_id=f"{subject.capture_id}:{job}", last=False
    )


async def test_a_trusted_source_introduces_an_item_and_a_second_listing_joins_it(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """A new key makes an item by rule from a trusted source; a listing with that key is the same item."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as held:
        first = record(
            held.vocabulary, "a", core__gtin=GTIN_HS, core__brand="strata", core__mpn="P5HS"
        )
        second = record(
            held.vocabulary, "b", source_id=UNTRUSTED, core__gtin=GTIN_HS, offer__price="99.90"
        )
        assert await identify(held, first) is Outcome.ACCEPTED
        assert await identify(held, second) is Outcome.ACCEPTED
        assert await identify(held, first) is Outcome.ACCEPTED  # the former answer, replayed
        assert await held.releases.release_due(SCOPE, held.vocabulary) == 1
        stream = await held.feed.stream(SCOPE.tenant_id, SCOPE.catalog_id)
        page = await held.feed.page(stream, 0)
        assert [change.position for change in page.changes] == list(
            range(1, page.cursor_position + 1)
        )
        # item, merchant, mapping; merchant, mapping, observation of the second; one release
        assert page.cursor_position == 7


async def test_an_untrusted_source_waits_until_its_key_is_introduced(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """Order of arrival changes nothing: the case is identified again when its key becomes active."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as held:
        market = record(held.vocabulary, "m", source_id=UNTRUSTED, core__gtin=GTIN_HS)
        assert await identify(held, market) is Outcome.IN_REVIEW
        assert await held.identifier.reconsider(SCOPE, held.vocabulary) == 0
        shop = record(held.vocabulary, "a", core__gtin=GTIN_HS)
        assert await identify(held, shop) is Outcome.ACCEPTED
        assert await held.identifier.reconsider(SCOPE, held.vocabulary) == 1
        assert await held.identifier.reconsider(SCOPE, held.vocabulary) == 0
        cases = await held.review.cases(SCOPE)
        assert [case.status for case in cases] == ["superseded"]


async def test_a_stale_part_number_is_a_question_never_a_merge(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """Keys that hit two items open a conflict."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as held:
        with_sink = record(
            held.vocabulary, "hs", core__gtin=GTIN_HS, core__brand="strata", core__mpn="P5HS"
        )
        plain = record(
            held.vocabulary, "p", core__gtin=GTIN_PLAIN, core__brand="strata", core__mpn="P5"
        )
        stale = record(
            held.vocabulary,
            "s",
            source_id=UNTRUSTED,
            core__gtin=GTIN_HS,
            core__brand="strata",
            core__mpn="P5",
        )
        assert await identify(held, stale) is Outcome.IN_REVIEW
        assert await identify(held, with_sink) is Outcome.ACCEPTED
        await held.identifier.reconsider(SCOPE, held.vocabulary)
        assert await identify(held, plain) is Outcome.ACCEPTED
        await held.identifier.reconsider(SCOPE, held.vocabulary)
        (case,) = await held.review.cases(SCOPE)
        assert (case.status, case.reason) == ("awaiting_human", "keys_of_two_items")
        assert len(case.candidates) == 2
