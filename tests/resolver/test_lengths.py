"""What is too long for the database's indexes fails alone, at once, and by a name that says so."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from prw.errors import Code, PrwError
from prw_resolver.extraction.model import ReadCode
from prw_resolver.stream.model import Outcome
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import Rooms, record, rooms
from tests.resolver.test_identity import identify
from tests.resolver.walking import FAST, Shop, page, shop, working
from tests.resolver.walking import record as tiny
from tests.support.waiting import until

LETTERS = random.Random(7)  # text that does not compress


def text(length: int) -> str:
    """Text that no index can make smaller."""
    return "".join(chr(LETTERS.randrange(0x4E00, 0x9FFF)) for _ in range(length))


@pytest.fixture
async def shop_rooms(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Shop]:
    """Rooms up to the worker."""
    async with shop(resolver_database["resolver_app"], tmp_path, FAST) as open_shop:
        yield open_shop


@pytest.mark.parametrize(
    "body",
    [page(tiny(text(3000))), page(tiny("r1") | {"listing": "https://shop.example/" + text(3000)})],
)
async def test_an_id_that_no_index_holds_is_the_adapter_s_fault(
    shop_rooms: Shop, body: bytes
) -> None:
    """SCHEMA_INVALID at the first attempt, rather than a database that seems away five times."""
    await shop_rooms.submit(body)
    async with working(shop_rooms):
        await until(shop_rooms.is_dead)
    assert await shop_rooms.dead() == [ReadCode.SCHEMA_INVALID]


async def test_texts_of_any_length_reach_identity(shop_rooms: Shop) -> None:
    """Titles, sellers, prices and numbers beyond reason are cut or unreadable; the capture is not lost."""
    absurd = tiny(
        "r1",
        seller=text(30_000),
        core__title=text(3_000),
        core__brand="Kestrel" + text(300_000),
        core__gtin="9" * 100_000,
        offer__price="9" * 50,
        offer__url="javascript:alert(1)",
    )
    capture_id = await shop_rooms.submit(page(absurd))
    async with working(shop_rooms):
        await until(lambda: shop_rooms.done(capture_id))
    [found] = shop_rooms.identified.records
    assert len(found.title) == 500
    assert found.merchant is None
    assert max(len(value.quote.quote) for value in found.values if value.quote) <= 20_000
    assert found.url == "https://shop.example/p/1"
    assert "offer:price" not in {value.attribute for value in found.values}


async def test_a_listing_that_cannot_be_kept_fails_alone_in_its_group(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """The others of the group are committed; the one is told VALIDATION_FAILED, not that the database is away."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as held:
        bad = replace(fresh(held, 0), listing_key=text(3000))
        subjects = [bad, *(fresh(held, number) for number in range(1, 8))]
        answers = await asyncio.gather(
            *(identify(held, subject, subject.listing_key[:8]) for subject in subjects),
            return_exceptions=True,
        )
    assert isinstance(answers[0], PrwError)
    assert answers[0].code is Code.VALIDATION_FAILED
    assert answers[1:] == [Outcome.ACCEPTED] * 7


def fresh(held: Rooms, number: int) -> NormalisedRecord:
    """A record of an item of its own."""
    return record(
        held.vocabulary, f"l{number}", core__brand="strata", core__mpn=f"P5{number}", merchant="L"
    )
