"""Submission of captures over gRPC (if_capture_submit, AW-02)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from prw.collector.v1 import evidence_pb2 as pb
from prw.errors import Code, PrwError
from prw_base import faults
from prw_resolver.access import service as access
from prw_resolver.access.model import Source
from prw_resolver.intake.service import load_capture
from prw_sdk.evidence import Presence
from tests.resolver.collecting import (
    AT,
    CATALOG,
    PAGE,
    Running,
    capture,
    digest,
    gathered,
    part,
    refusal,
    timestamp,
)

Rows = psycopg.Connection[dict[str, Any]]


def count(superuser: Rows, table: str) -> int:
    """How many rows there are, whosever they are."""
    [row] = superuser.execute(f"select count(*) as n from {table}").fetchall()  # noqa: S608  # names of ours
    return int(row["n"])


def nothing_kept(superuser: Rows) -> bool:
    """Whether no trace of a capture is there."""
    tables = ("capture", "capture_part", "receipt", "procrastinate_jobs")
    return all(count(superuser, table) == 0 for table in tables)


async def test_a_capture_is_durable_with_its_receipt_and_its_job(
    resolver: Running, superuser: Rows
) -> None:
    """One transaction keeps all of it, and the receipt says no more than that."""
    collector = await resolver.collector()
    await collector.put()
    receipt = await collector.submit(capture())
    assert (receipt.status, receipt.replayed) == (pb.RECEIPT_STATUS_STORED, False)
    [row] = superuser.execute("select * from capture").fetchall()
    assert row["capture_id"] == receipt.capture_id
    assert (row["worker_id"], row["instance_id"]) == ("cw_one", "ci_one")
    assert (row["captured_at"], row["identity_generation"]) == (AT, 1)
    [job] = superuser.execute("select args from procrastinate_jobs").fetchall()
    assert job["args"]["capture_id"] == receipt.capture_id
    assert count(superuser, "receipt") == count(superuser, "capture_part") == 1


async def test_the_same_capture_again_gives_the_same_receipt(
    resolver: Running, superuser: Rows
) -> None:
    """AW-02: a retry after a lost answer converges: one row, one job, the former receipt, replayed."""
    collector = await resolver.collector()
    await collector.put()
    first, second = await collector.submit(capture()), await collector.submit(capture())
    assert second.replayed
    assert (second.receipt_id, second.capture_id) == (first.receipt_id, first.capture_id)
    assert second.received_at == first.received_at
    assert count(superuser, "capture") == count(superuser, "procrastinate_jobs") == 1


async def test_the_same_body_is_a_digest_of_fields_not_of_wire_bytes(resolver: Running) -> None:
    """The order of a config's fields on the wire changes nothing."""
    collector = await resolver.collector()
    await collector.put()
    first = await collector.submit(capture(config={"a": 1, "b": [True, None, "x"]}))
    second = await collector.submit(capture(config={"b": [True, None, "x"], "a": 1}))
    assert second.receipt_id == first.receipt_id


@pytest.mark.parametrize(
    "other",
    [
        {"presence": pb.PRESENCE_ABSENT},
        {"adapter": pb.AdapterVersion(name="schemaorg", version="1.0.1")},
        {"parts": [part(http_status=203)]},
        {"egress": pb.Egress(country="US", verified=True)},
        {"config": {"locale": "en-US"}},
    ],
)
async def test_another_body_under_the_same_key_is_a_conflict(
    resolver: Running, superuser: Rows, other: dict[str, Any]
) -> None:
    """IDEMPOTENCY_CONFLICT, and what was kept first stays."""
    collector = await resolver.collector()
    await collector.put()
    await collector.submit(capture())
    refused = await refusal(collector.submit(capture(**other)))
    assert refused.code is Code.IDEMPOTENCY_CONFLICT
    assert count(superuser, "capture") == 1


@pytest.mark.parametrize(
    "other",
    [
        {"native_record_id": "https://shop.example/p/2"},
        {"captured_at": timestamp(AT + timedelta(microseconds=1))},
        {"source_id": "ten_synth_a.src_two"},
    ],
)
async def test_each_part_of_the_key_tells_captures_apart(
    resolver: Running, superuser: Rows, other: dict[str, Any]
) -> None:
    """The key is worker, source, native record and captured_at, to the microsecond."""
    collector = await resolver.collector(sources=("src_one", "src_two"))
    await collector.put()
    await collector.submit(capture())
    receipt = await collector.submit(capture(**other))
    assert not receipt.replayed
    assert count(superuser, "capture") == 2


async def test_instances_of_one_worker_share_the_key_space(
    resolver: Running, superuser: Rows
) -> None:
    """Two instances that fetch the same target at the same moment made one capture; workers are told apart."""
    one = await resolver.collector(instance="ci_one")
    await one.put()
    first = await one.submit(capture())
    twin = await (await resolver.collector(instance="ci_two")).submit(capture())
    assert twin.replayed
    assert twin.receipt_id == first.receipt_id
    other = await resolver.collector(instance="ci_three", worker="cw_two")
    assert not (await other.submit(capture())).replayed
    assert count(superuser, "capture") == 2


async def test_concurrent_submissions_keep_one_row(resolver: Running, superuser: Rows) -> None:
    """Races are resolved by the unique constraint: one is new, the others are replays of it."""
    collector = await resolver.collector()
    await collector.put()
    receipts = await gathered(*(collector.submit(capture()) for _ in range(12)))
    assert sorted(receipt.replayed for receipt in receipts) == [False] + [True] * 11
    assert len({receipt.receipt_id for receipt in receipts}) == 1
    assert count(superuser, "capture") == count(superuser, "procrastinate_jobs") == 1


async def test_concurrent_submissions_of_other_bodies_conflict(resolver: Running) -> None:
    """Of racing bodies under one key one is kept and the others are told."""
    collector = await resolver.collector()
    await collector.put()
    bodies = [capture(config={"n": number}) for number in range(6)]
    results = await gathered(*(collector.submit(body) for body in bodies))
    refused = [result for result in results if isinstance(result, PrwError)]
    assert [error.code for error in refused] == [Code.IDEMPOTENCY_CONFLICT] * 5


async def test_a_capture_may_cite_only_stored_artifacts(resolver: Running, superuser: Rows) -> None:
    """AW-02, bytes first: ARTIFACT_NOT_STORED names the part; declared is not stored, another tenant's is not ours."""
    collector = await resolver.collector()
    await collector.declare()
    stranger = await resolver.collector("ten_synth_b")
    await stranger.put(source_id="ten_synth_b.src_one")
    refused = await refusal(collector.submit(capture()))
    assert refused.code is Code.ARTIFACT_NOT_STORED
    assert refused.field == "capture.parts[0].sha256"
    assert nothing_kept(superuser)


async def test_a_304_must_cite_stored_bytes(resolver: Running) -> None:
    """What a part stands for has to be there too."""
    collector = await resolver.collector()
    await collector.put()
    await collector.put(b"")
    cites = pb.Citation(captured_at=timestamp(AT), sha256=digest(b"never stored"))
    unchanged = part(b"", role="page", http_status=304, cites=cites)
    refused = await refusal(collector.submit(capture(parts=[unchanged])))
    assert refused.field == "capture.parts[0].cites.sha256"
    unchanged.cites.sha256 = digest(PAGE)
    assert not (await collector.submit(capture(parts=[unchanged]))).replayed


def nanosecond(message: pb.Capture) -> None:
    """A captured_at that is finer than a microsecond."""
    message.captured_at.CopyFrom(Timestamp(seconds=1_700_000_000, nanos=1))


def fraction(message: pb.Capture) -> None:
    """A number that has no exact text."""
    message.config.update({"ratio": 0.1})


def wrong_digest(message: pb.Capture) -> None:
    """A digest of another config."""
    message.config_digest = digest(b"other")


def twin_roles(message: pb.Capture) -> None:
    """Two parts of one role."""
    message.parts.add().CopyFrom(message.parts[0])


def control_character(message: pb.Capture) -> None:
    """A native record id that no address has."""
    message.native_record_id = "a\0b"


def nul(message: pb.Capture) -> None:
    """A character that no text column holds."""
    message.parts[0].headers[0].value = "a\0b"


def other_length(message: pb.Capture) -> None:
    """Another length than the artifact's."""
    message.parts[0].bytes += 1


def tomorrow(message: pb.Capture) -> None:
    """A capture from a clock that is a day ahead."""
    message.captured_at.FromDatetime(datetime.now(UTC) + timedelta(days=1))


def fetched_tomorrow(message: pb.Capture) -> None:
    """A part from a clock that is a day ahead."""
    message.parts[0].fetched_at.FromDatetime(datetime.now(UTC) + timedelta(days=1))


def no_parts(message: pb.Capture) -> None:
    """Nothing was fetched."""
    del message.parts[:]


def no_presence(message: pb.Capture) -> None:
    """Neither present nor absent."""
    message.presence = pb.PRESENCE_UNSPECIFIED


def next_schema(message: pb.Capture) -> None:
    """A meaning that is not known here."""
    message.schema_version = 2


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (nanosecond, "capture.captured_at"),
        (fraction, "capture.config"),
        (wrong_digest, "capture.config_digest"),
        (twin_roles, "capture.parts[1].role"),
        (control_character, "capture.native_record_id"),
        (nul, "capture.parts[0].headers[0].value"),
        (other_length, "capture.parts[0].bytes"),
        (tomorrow, "capture.captured_at"),
        (fetched_tomorrow, "capture.parts[0].fetched_at"),
        (no_parts, "capture.parts"),
        (no_presence, "capture.presence"),
        (next_schema, "capture.schema_version"),
    ],
)
async def test_a_capture_that_breaks_a_rule_persists_nothing(
    resolver: Running, superuser: Rows, spoil: Callable[[pb.Capture], None], field: str
) -> None:
    """VALIDATION_FAILED names the field."""
    collector = await resolver.collector()
    await collector.put()
    message = capture()
    spoil(message)
    refused = await refusal(collector.submit(message))
    assert (refused.code, refused.field) == (Code.VALIDATION_FAILED, field)
    assert nothing_kept(superuser)


async def test_a_clock_that_is_a_little_ahead_is_forgiven(resolver: Running) -> None:
    """Within the setting `clock_skew` a capture counts as now."""
    collector = await resolver.collector()
    await collector.put()
    ahead = timestamp(datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=2))
    assert (await collector.submit(capture(captured_at=ahead))).receipt_id


async def test_ids_that_would_run_into_each_other_are_two_captures(resolver: Running) -> None:
    """The key is no text with separators: neither a colon nor a composed letter makes two ids one."""
    collector = await resolver.collector()
    await collector.put()
    ids = ["a:b", "a", "b:a", "A", "\u00e9", "e\u0301", " a", "a "]
    receipts = [await collector.submit(capture(native_record_id=name)) for name in ids]
    assert len({receipt.receipt_id for receipt in receipts}) == len(ids)
    assert not any(receipt.replayed for receipt in receipts)


async def test_the_longest_native_record_id_is_kept(resolver: Running) -> None:
    """An address of 2048 characters of four bytes each is longer than an index may hold."""
    collector = await resolver.collector()
    await collector.put()
    longest = "".join(chr(0x1F000 + index % 255) for index in range(2048))
    message = capture(native_record_id=longest)
    first = await collector.submit(message)
    assert (await collector.submit(message)).receipt_id == first.receipt_id


async def test_without_a_vocabulary_a_capture_stays_with_its_collector(
    resolver: Running, superuser: Rows
) -> None:
    """There is no generation to pin, so the collector is asked to come again: UNAVAILABLE, retryable."""
    await access.put_catalog(resolver.parts.db, "ten_synth_c", CATALOG, "")
    source = Source("ten_synth_c", CATALOG, "ten_synth_c.src_one", "", True, {})
    await access.put_source(resolver.parts.db, source)
    collector = await resolver.collector("ten_synth_c")
    await collector.put(source_id="ten_synth_c.src_one")
    refused = await refusal(collector.submit(capture("ten_synth_c.src_one")))
    assert (refused.code, refused.retryable) == (Code.UNAVAILABLE, True)
    assert "vocabulary publish" in refused.message
    assert nothing_kept(superuser)


async def test_a_caller_without_a_worker_submits_nothing(resolver: Running) -> None:
    """A capture is attributed to a worker, or it is not taken."""
    collector = await resolver.collector(worker=None)
    refused = await refusal(collector.submit(capture()))
    assert refused.code is Code.ATTRIBUTION_DENIED


@pytest.mark.parametrize("point", ["intake.before_commit", "intake.after_commit"])
async def test_a_submission_that_fails_at_any_point_can_be_repeated(
    resolver: Running, superuser: Rows, point: str
) -> None:
    """Before the commit nothing is kept, after it everything; either way the retry gives one capture."""
    collector = await resolver.collector()
    await collector.put()
    faults.arm(f"{point}=raise")
    try:
        assert (await refusal(collector.submit(capture()))).code is Code.INTERNAL
    finally:
        faults.disarm()
    assert nothing_kept(superuser) == (point == "intake.before_commit")
    receipt = await collector.submit(capture())
    assert receipt.replayed == (point == "intake.after_commit")
    assert count(superuser, "capture") == count(superuser, "procrastinate_jobs") == 1


async def test_the_worker_gets_the_capture_that_the_collector_had(
    resolver: Running, tmp_path: Path
) -> None:
    """What is read again are the same values over the same bytes."""
    collector = await resolver.collector()
    await collector.put()
    receipt = await collector.submit(capture())
    parts = resolver.parts
    stored = await load_capture(parts.db, parts.objects, "ten_synth_a", receipt.capture_id)
    assert stored is not None
    assert (stored.catalog_id, stored.generation) == (CATALOG, 1)
    evidence = stored.evidence
    assert evidence.config == {"locale": "de-DE", "depth": 2}
    assert (evidence.captured_at, evidence.presence) == (AT, Presence.PRESENT)
    page = evidence.part("page")
    assert (page.body, page.headers) == (PAGE, (("etag", '"1"'),))
    assert page.charset_declared is None
    assert await load_capture(parts.db, parts.objects, "ten_synth_b", receipt.capture_id) is None
