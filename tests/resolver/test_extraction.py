"""Extraction: stored evidence is read by the adapter that made it, and kept with where each claim stands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from prw_resolver.extraction import service, store
from prw_resolver.extraction.model import Captured, ReadCode, ReadFailed, ReadOutcome
from prw_resolver.extraction.pool import ReaderPool
from prw_resolver.vocabulary.model import Basis, NormalisedRecord
from prw_sdk.evidence import AdapterVersion, Presence
from tests.resolver.walking import SSD, TENANT, Shop, attributes, page, record, shop
from tests.support.tiny_plugin import POINTS


@pytest.fixture
async def rooms(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Shop]:
    """Rooms over a database of the test's own."""
    async with shop(resolver_database["resolver_app"], tmp_path) as open_shop:
        yield open_shop


async def extract(rooms: Shop, captured: Captured) -> None:
    """The stage `extract`."""
    step = await service.extract(rooms.parts.readers, captured)
    async with rooms.db.transaction(TENANT) as conn:
        await step(conn)


async def normalise(rooms: Shop, captured: Captured) -> tuple[NormalisedRecord, ...]:
    """The stage `normalise`, and what it left."""
    step = await service.normalise(rooms.db, captured)
    async with rooms.db.transaction(TENANT) as conn:
        await step(conn)
        return await service.load_normalised(conn, captured)


async def walked(rooms: Shop, body: bytes) -> tuple[NormalisedRecord, ...]:
    """A page through both stages."""
    captured = await rooms.captured(await rooms.submit(body))
    await extract(rooms, captured)
    return await normalise(rooms, captured)


async def code_of(rooms: Shop, captured: Captured) -> ReadCode:
    """Why the capture cannot be read."""
    with pytest.raises(ReadFailed) as failed:
        await service.extract(rooms.parts.readers, captured)
    return failed.value.code


async def test_a_page_becomes_normalised_records_with_keys_and_quotes(rooms: Shop) -> None:
    """Every value quotes the claim it rests on: capture, part, digest, selector (INV-05)."""
    body = page(record("r1"), record("r2", core__title="Kestrel KX990 1TB SSD, 2-pack"))
    first, second = await walked(rooms, body)
    assert first.class_id == "storage_ssd"
    assert {key.rule for key in first.keys} == {"gtin", "brand_mpn"}
    assert {key.identity_hash for key in first.keys}.isdisjoint(
        key.identity_hash for key in second.keys
    )
    brand = first.value("core:brand")
    assert brand is not None
    assert brand.quote is not None
    assert (brand.value, brand.quote.quote, brand.basis) == ("kestrel", "Kestrel", Basis.STATED)
    assert brand.quote.selector == {
        "type": "json_pointer",
        "value": "/records/0/claims/core:brand",
    }
    condition = first.value("core:condition")
    assert condition is not None
    assert (condition.value, condition.basis, condition.quote) == ("new", Basis.DEFAULT, None)
    pack = second.value("core:pack_quantity")
    assert pack is not None
    assert (pack.value, pack.basis) == ("2", Basis.HINT)
    assert pack.quote is not None
    assert pack.quote.attribute == "core:title"
    price = first.value("offer:price")
    assert price is not None
    assert (price.value, price.unit) == ("89.9", "USD")


async def test_the_record_knows_its_listing_merchant_and_page(rooms: Shop) -> None:
    """What identity needs beside values and keys."""
    with_seller, without = await walked(rooms, page(record("r1"), record("r2", seller=None)))
    assert with_seller.merchant is not None
    assert with_seller.merchant.value == "Orbit Deals"
    assert without.merchant is None
    assert with_seller.title == SSD["core:title"]
    assert with_seller.url == "https://shop.example/p/1"
    assert (with_seller.listing_key, with_seller.generation) == ("r1", 1)


async def test_a_title_that_contradicts_a_statement_leaves_no_value_and_no_key(rooms: Shop) -> None:
    """Stated new, titled renewed: ambiguous, so that no rule accepts it."""
    claims = {"core__title": "Kestrel KX990 1TB SSD (Renewed)", "core__condition": "new"}
    [found] = await walked(rooms, page(record("r1", None, **claims)))
    assert found.ambiguous == ("core:condition",)
    assert found.value("core:condition") is None
    assert found.keys == ()


async def test_what_the_vocabulary_has_no_place_for_is_named(rooms: Shop) -> None:
    """Nothing a source states is dropped in silence."""
    claims = {"core__colour": "black", "core__gtin": "9521100100015"}
    [found] = await walked(rooms, page(record("r1", None, **claims)))
    assert found.value("core:gtin") is None
    async with rooms.db.transaction(TENANT) as conn:
        cursor = await conn.execute("select unmapped, unreadable from resolver.normalised_record")
        row = await cursor.fetchone()
    assert row == (["core:colour"], ["core:gtin: 9521100100015: the check digit is wrong"])


async def test_a_page_that_is_no_record_says_so(rooms: Shop) -> None:
    """An outcome in the adapter's own words, and nothing for identity."""
    capture_id = await rooms.submit(page(do="not_a_record"))
    captured = await rooms.captured(capture_id)
    await extract(rooms, captured)
    assert await normalise(rooms, captured) == ()
    async with rooms.db.transaction(TENANT) as conn:
        outcomes = await service.read_outcomes(conn, TENANT, [capture_id])
    assert outcomes[capture_id] == (ReadOutcome.NOT_A_RECORD, "a page about something else", 0)


async def test_words_that_are_no_text_are_kept_in_writing(rooms: Shop) -> None:
    """Foreign code may say anything; the database takes no NUL and no lone surrogate."""
    capture_id = await rooms.submit(page(do="not_text"))
    await extract(rooms, await rooms.captured(capture_id))
    async with rooms.db.transaction(TENANT) as conn:
        outcomes = await service.read_outcomes(conn, TENANT, [capture_id])
    assert outcomes[capture_id][1] == "\\0 and \\ud800"


async def test_an_absence_is_kept_without_asking_the_adapter(rooms: Shop) -> None:
    """The source answered 404 or 410: there is nothing to read, and that is the outcome."""
    capture_id = await rooms.submit(page(do="raise"), presence=Presence.ABSENT)
    captured = await rooms.captured(capture_id)
    await extract(rooms, captured)
    assert await normalise(rooms, captured) == ()
    async with rooms.db.transaction(TENANT) as conn:
        outcomes = await service.read_outcomes(conn, TENANT, [capture_id])
    assert outcomes[capture_id][0] is ReadOutcome.ABSENT


async def test_changed_bytes_are_not_read(rooms: Shop) -> None:
    """DIGEST_MISMATCH: what was captured is what is read, or nothing is."""
    captured = await rooms.captured(await rooms.submit(page(record())))
    part = replace(captured.evidence.part("page"), body=b"{}")
    changed = replace(captured, evidence=replace(captured.evidence, parts=(part,)))
    assert await code_of(rooms, changed) is ReadCode.DIGEST_MISMATCH


async def test_a_version_that_is_not_installed_is_said_so(rooms: Shop) -> None:
    """Never another version in its place: the capture pins what made it."""
    other = AdapterVersion("tiny", "9.9.9")
    captured = await rooms.captured(await rooms.submit(page(record()), adapter=other))
    assert await code_of(rooms, captured) is ReadCode.UNKNOWN_ADAPTER_VERSION


@pytest.mark.parametrize(
    "body",
    [
        page(do="raise"),
        page(record("r1"), record("r1")),
        page(record("")),
        page(record("r\0")),
        page(record("r1"), role="elsewhere"),
        page(record("r1", core__title="a\0b")),
        b"not JSON",
    ],
)
async def test_an_adapter_that_raises_or_returns_rubbish_is_a_typed_failure(
    rooms: Shop, body: bytes
) -> None:
    """SCHEMA_INVALID: reading the same bytes again would give the same."""
    captured = await rooms.captured(await rooms.submit(body))
    code = await code_of(rooms, captured)
    assert code is ReadCode.SCHEMA_INVALID
    assert not code.retryable


async def test_a_crashing_and_a_hanging_parser_harm_their_own_capture_only(rooms: Shop) -> None:
    """The process is replaced; the next capture is read as if nothing had been."""
    crash = await rooms.captured(await rooms.submit(page(do="crash")))
    hang = await rooms.captured(await rooms.submit(page(do="hang")))
    good = await rooms.captured(await rooms.submit(page(record())))
    async with ReaderPool(1, timedelta(seconds=1), POINTS) as readers:
        for captured, code in (
            (crash, ReadCode.PARSER_CRASHED),
            (hang, ReadCode.PARSER_TIMEOUT),
        ):
            with pytest.raises(ReadFailed) as failed:
                await readers.read(captured.evidence)
            assert failed.value.code is code
            assert code.retryable
        assert len((await readers.read(good.evidence)).records) == 1


async def test_a_reading_that_is_given_up_leaves_a_usable_pool(rooms: Shop) -> None:
    """A job that runs out of time cancels its reading; the hung process does not stay in the way."""
    hang = await rooms.captured(await rooms.submit(page(do="hang")))
    good = await rooms.captured(await rooms.submit(page(record())))
    async with ReaderPool(1, timedelta(minutes=5), POINTS) as readers:
        await readers.read(good.evidence)
        reading = asyncio.create_task(readers.read(hang.evidence))
        await asyncio.wait([reading], timeout=0.2)
        reading.cancel()
        await asyncio.wait([reading])
        assert len((await readers.read(good.evidence)).records) == 1


async def test_a_later_attempt_reads_again_and_leaves_the_earlier_reading(rooms: Shop) -> None:
    """Readings are kept by attempt group; a normalising takes the newest one up to its own."""
    capture_id = await rooms.submit(page(record("r1")))
    first, third = await rooms.captured(capture_id), await rooms.captured(capture_id, 3)
    await extract(rooms, first)
    assert attributes(await normalise(rooms, third))[0]["core:mpn"] == "KX9901T0"
    async with rooms.db.transaction(TENANT) as conn:
        group, _ = await store.load_reading(conn, third)
        assert group == 0
        with pytest.raises(LookupError):
            await store.load_reading(conn, replace(first, capture_id="cap_unknown"))


async def test_a_model_s_claim_stays_known_as_one(rooms: Shop) -> None:
    """Advice is never the ground of an automatic decision, so its origin travels with the quote."""
    [found] = await walked(rooms, page(record("r1"), origin="model"))
    assert {value.quote.origin for value in found.values if value.quote is not None} == {"model"}


async def test_what_was_read_cannot_be_changed_or_seen_by_others(rooms: Shop) -> None:
    """No update for the server's role, and no row for another tenant."""
    await walked(rooms, page(record("r1")))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with rooms.db.transaction(TENANT) as conn:
            await conn.execute("update resolver.claim set value_as_stated = 'x'")
    async with rooms.db.transaction("ten_synth_b") as conn:
        for table in ("extraction", "record", "claim", "normalised_record", "normalised_value"):
            cursor = await conn.execute(f"select count(*) from resolver.{table}")  # noqa: S608  # names of ours
            assert await cursor.fetchone() == (0,)
