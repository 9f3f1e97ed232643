"""Heartbeats and run reports: what is said, when it is left out, and what ends a collector (if_heartbeat)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from prw.collector.v1 import collector_service_pb2 as collectors
from prw.collector.v1.evidence_pb2 import RECEIPT_STATUS_RESOLVED, RECEIPT_STATUS_RESOLVING
from prw.errors import Code, PrwError
from prw_sdk.cli.run import Liveness, push, run_sending
from prw_sdk.collect import SourceJob
from prw_sdk.report import (
    Failure,
    RunOutcome,
    SourceReport,
    is_retryable,
    summarise,
    unwatched,
)
from prw_sdk.spool.blobs import Blobs
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.uplink import Binding, Uplink
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.resolver_double import Intake
from tests.sdk.sending import resolver
from tests.support.waiting import until

Shop = Callable[..., None]
NOW = datetime(2026, 10, 11, 8, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prw_sdk.uplink.heartbeat.AGAIN", timedelta(milliseconds=5))


async def test_a_run_is_reported_once_with_what_each_source_came_to(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """As a scheduler's run ends; the instance is registered as scheduled."""
    shop(a=page("A"), b=answer(status=500), gone=answer(status=404))
    await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    (beat,) = intake.heartbeats
    assert beat.instance_id == "ci_list_01"
    assert beat.run.outcome == collectors.RUN_OUTCOME_PARTIAL
    assert beat.run.captures_submitted == 2
    (source,) = beat.run.sources
    assert (source.source_id, source.planned, source.kept) == ("src_list", 3, 2)
    assert (source.submitted, source.put_off, source.poison) == (2, 1, 0)
    assert beat.run.started_at.ToDatetime(UTC) <= beat.run.ended_at.ToDatetime(UTC)
    assert intake.registered[0].runtime_kind == collectors.RUNTIME_KIND_SCHEDULED


async def test_a_run_whose_plan_failed_is_reported_with_its_code(
    site: Site, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Every source failed; a later run may succeed where the source itself is down."""
    site.serve("/index.txt", answer(status=503))
    await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    run = intake.heartbeats[0].run
    assert run.outcome == collectors.RUN_OUTCOME_FAILED
    assert (run.error.code, run.error.retryable) == ("UPSTREAM_503", True)


async def test_a_good_run_is_reported_as_such(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Without an error."""
    shop(a=page("A"))
    await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    run = intake.heartbeats[0].run
    assert (run.outcome, run.HasField("error")) == (collectors.RUN_OUTCOME_SUCCEEDED, False)


async def test_a_heartbeat_brings_receipts_back_and_asks_for_each_no_sooner_than_it_may(
    filled: Spool, intake: Intake
) -> None:
    """At most once in 30 s, whatever it answered."""
    intake.receipt_status = RECEIPT_STATUS_RESOLVING
    await push(filled, resolver(intake), unwatched)
    async with Uplink(resolver(intake), filled) as uplink:
        await uplink.heartbeat()
        await uplink.heartbeat()
    first, second = intake.heartbeats
    assert (len(first.receipt_ids), len(second.receipt_ids)) == (3, 0)
    assert filled.ledger.receipt_statuses() == {("src_list", "resolving"): 3}


async def test_a_heartbeat_is_sent_once_more_and_then_left_out(
    spool: Spool, intake: Intake
) -> None:
    """Best effort; the same moment both times, so it is recorded once."""
    down = PrwError(Code.UNAVAILABLE, "down")
    async with Uplink(resolver(intake), spool) as uplink:
        intake.fail("Heartbeat", down)
        assert await uplink.heartbeat() is not None
        intake.fail("Heartbeat", down, down)
        assert await uplink.heartbeat() is None
    assert intake.calls["Heartbeat"] == 4
    assert len(intake.heartbeats) == 1


async def test_a_receipt_that_is_unknown_silences_no_heartbeat(
    filled: Spool, intake: Intake
) -> None:
    """It is said again without receipts."""
    await push(filled, resolver(intake), unwatched)
    intake.fail("Heartbeat", PrwError(Code.NOT_FOUND, "no such receipt"))
    async with Uplink(resolver(intake), filled) as uplink:
        assert await uplink.heartbeat() is not None
    assert list(intake.heartbeats[0].receipt_ids) == []


@pytest.mark.parametrize("asks", ["heartbeat", "ask_receipts"])
async def test_a_receipt_that_is_unreadable_hides_no_other_and_is_asked_for_once(
    filled: Spool, intake: Intake, asks: str
) -> None:
    """The others are noted, and it is told by its own status (if_receipt_get)."""
    await push(filled, resolver(intake), unwatched)
    _, receipt_id = filled.ledger.receipts_to_ask(0, datetime.now(UTC), 500)[0]
    intake.unreadable.add(receipt_id)
    intake.receipt_status = RECEIPT_STATUS_RESOLVING
    async with Uplink(resolver(intake), filled) as uplink:
        if asks == "heartbeat":
            assert await uplink.heartbeat() is not None
        else:
            await uplink.ask_receipts(datetime.now(UTC))
    assert filled.ledger.receipt_statuses() == {
        ("src_list", "resolving"): 2,
        ("src_list", "unreadable"): 1,
    }
    later = datetime.now(UTC) + timedelta(days=1)
    assert receipt_id not in dict(filled.ledger.receipts_to_ask(0, later, 500)).values()


async def test_a_receipt_that_was_unreadable_is_asked_for_again_after_a_retry(
    filled: Spool, intake: Intake
) -> None:
    """The spool had been pointed at another resolver for a while; what is known of the others stays."""
    await push(filled, resolver(intake), unwatched)
    now = datetime.now(UTC)
    _, receipt_id = filled.ledger.receipts_to_ask(0, now, 500)[0]
    intake.unreadable.add(receipt_id)
    intake.receipt_status = RECEIPT_STATUS_RESOLVED
    async with Uplink(resolver(intake), filled) as uplink:
        await uplink.ask_receipts(now)
        intake.unreadable.clear()
        assert filled.ledger.revive("src_other", None, now) == 0
        assert filled.ledger.revive("src_list", None, now) == 1
        assert await uplink.ask_receipts(now) == 1
    assert filled.ledger.receipt_statuses() == {("src_list", "resolved"): 3}


async def test_a_run_is_as_good_as_it_was_where_its_report_gets_lost(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """A missed report is visible at the resolver, and no loss of data."""
    shop(a=page("A"))
    intake.fail("Heartbeat", *[PrwError(Code.UNAVAILABLE, "down")] * 2)
    result = await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    assert result.is_clean
    assert result.refused is None


async def test_a_run_whose_disk_ended_is_reported_before_it_is_told(
    shop: Shop,
    job: SourceJob,
    spool: Spool,
    intake: Intake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As failed, and as one that a later run may be better than."""
    shop(a=page("A"))

    def full(*_: object) -> list[str]:
        raise SpoolUnusable("the disk is full")

    monkeypatch.setattr(Blobs, "put_all", full)
    with pytest.raises(SpoolUnusable):
        await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    run = intake.heartbeats[0].run
    assert run.outcome == collectors.RUN_OUTCOME_FAILED
    assert (run.error.code, run.error.retryable) == ("STORAGE_UNAVAILABLE", True)


async def test_a_report_that_meets_a_revoked_credential_says_so(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """The collector must stop (if_heartbeat)."""
    shop(a=page("A"))
    intake.fail("Heartbeat", PrwError(Code.CREDENTIAL_REVOKED, "revoked"))
    result = await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    assert result.is_revoked


async def test_a_long_running_instance_beats_every_third_of_its_lease(
    spool: Spool, intake: Intake
) -> None:
    """From its registration on, until it is stopped."""
    stop, liveness = asyncio.Event(), Liveness(resolver(intake), spool)
    beating = asyncio.create_task(liveness.beat(stop))
    liveness.registered(Binding("ten", frozenset(), lease=timedelta(milliseconds=60)))
    await until(lambda: len(intake.heartbeats) >= 3)
    stop.set()
    await beating
    assert not any(beat.HasField("run") for beat in intake.heartbeats)
    assert len({beat.at.ToNanoseconds() for beat in intake.heartbeats}) == len(intake.heartbeats)


@pytest.mark.parametrize(
    ("reports", "trouble", "outcome", "code"),
    [
        ([SourceReport("a", 1)], None, RunOutcome.SUCCEEDED, None),
        (
            [SourceReport("a", 1), SourceReport("b", 1, failure=Failure("TIMEOUT", "x"))],
            None,
            RunOutcome.PARTIAL,
            "TIMEOUT",
        ),
        (
            [SourceReport("a", 1, failure=Failure("ADAPTER_ERROR", "x"))],
            None,
            RunOutcome.FAILED,
            "ADAPTER_ERROR",
        ),
        ([SourceReport("a", 1, outcomes={Outcome.POISON: 1})], None, RunOutcome.PARTIAL, None),
        ([SourceReport("a", 1, stopped=True)], None, RunOutcome.PARTIAL, None),
        (
            [SourceReport("a", 1)],
            PrwError(Code.UNAVAILABLE, "x"),
            RunOutcome.PARTIAL,
            "UNAVAILABLE",
        ),
    ],
)
def test_how_a_run_ended(
    reports: list[SourceReport], trouble: PrwError | None, outcome: RunOutcome, code: str | None
) -> None:
    """Succeeded where nothing waits, failed where every source did, partial between."""
    summary = summarise(reports, {}, NOW, NOW, trouble)
    assert (summary.outcome, summary.code) == (outcome, code)


def test_which_codes_a_later_run_may_be_rid_of() -> None:
    """Of fetching as of calls; a defect or a broken bound waits for a person."""
    passing = ("UPSTREAM_503", "TIMEOUT", "UNAVAILABLE", "CIRCUIT_OPEN")
    lasting = ("ADAPTER_ERROR", "UPSTREAM_403", "ASSERTION_BREACHED", "NOT_FOUND")
    assert all(map(is_retryable, passing))
    assert not any(map(is_retryable, lasting))
