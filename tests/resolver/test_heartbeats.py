"""Heartbeats and run reports over gRPC (if_heartbeat)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.collector.v1 import collector_service_pb2 as pb
from prw.errors import Code
from prw_resolver.intake.collectors.service import look
from prw_resolver.intake.store import drop_old_reports
from tests.resolver.collecting import (
    AT,
    Caller,
    Running,
    capture,
    gathered,
    refusal,
    running,
    timestamp,
)

Rows = psycopg.Connection[dict[str, Any]]

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
LONG_RUNNING, SCHEDULED = pb.RUNTIME_KIND_LONG_RUNNING, pb.RUNTIME_KIND_SCHEDULED
SUCCEEDED, PARTIAL, FAILED = (
    pb.RUN_OUTCOME_SUCCEEDED,
    pb.RUN_OUTCOME_PARTIAL,
    pb.RUN_OUTCOME_FAILED,
)


def report(outcome: int, at: datetime = AT, **other: Any) -> pb.RunReport:
    """What a run that ended at that moment came to."""
    fields: dict[str, Any] = {
        "started_at": timestamp(at - MINUTE),
        "ended_at": timestamp(at),
        "outcome": outcome,
    }
    return pb.RunReport(**(fields | other))


async def registered(resolver: Running, kind: int = LONG_RUNNING, **who: Any) -> Caller:
    """A collector that has registered."""
    collector = await resolver.collector(**who)
    await collector.register(
        worker_id="cw_one",
        instance_id=who.get("instance", "ci_one"),
        version="1.2.3",
        runtime_kind=kind,
        targets=[f"{who.get('tenant', 'ten_synth_a')}.src_one"],
    )
    return collector


async def test_a_heartbeat_keeps_an_instance_live_for_its_lease(resolver: Running) -> None:
    """Ninety seconds by the resolver's clock, whatever the collector's says."""
    collector = await registered(resolver)
    before = datetime.now(UTC)
    answer = await collector.beat(AT)
    until = answer.lease_expires_at.ToDatetime(tzinfo=UTC)
    lease = timedelta(seconds=90)
    assert before + lease <= until <= datetime.now(UTC) + lease
    assert (answer.instance_id, answer.consecutive_failures) == ("ci_one", 0)
    assert not answer.HasField("last_success")
    [standing] = await look(resolver.parts.db, "ten_synth_a", lease)
    assert (standing.is_live, standing.version) == (True, "1.2.3")


async def test_a_scheduled_instance_has_no_lease(resolver: Running) -> None:
    """It is heard of when it is run."""
    collector = await registered(resolver, SCHEDULED)
    assert not (await collector.beat(AT, report(SUCCEEDED))).HasField("lease_expires_at")


async def test_a_lease_that_ran_out_is_seen(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """The lease is a setting; a missed heartbeat shows as its end, not as loss."""
    none = timedelta(0)
    async with running(resolver_database, tmp_path, lease=none) as resolver:
        collector = await registered(resolver)
        await collector.beat(AT)
        [standing] = await look(resolver.parts.db, "ten_synth_a", none)
        assert not standing.is_live
        assert standing.heard_at == standing.lease_expires_at


async def test_failures_in_a_row_are_counted_until_a_run_does_not_fail(resolver: Running) -> None:
    """A partial run ends the row without being a success; liveness alone changes neither."""
    collector = await registered(resolver)
    told, latest = [], None
    for minute, outcome in enumerate([FAILED, FAILED, SUCCEEDED, FAILED, None, PARTIAL, FAILED]):
        at = AT + minute * MINUTE
        run = None if outcome is None else report(outcome, at)
        answer = await collector.beat(at, run)
        latest = answer.last_success if answer.HasField("last_success") else None
        told.append((answer.consecutive_failures, latest is not None))
    assert told == [
        (1, False),
        (2, False),
        (0, True),
        (1, True),
        (1, True),
        (0, True),
        (1, True),
    ]
    assert latest == timestamp(AT + 2 * MINUTE)


async def test_a_late_report_changes_nothing_newer(resolver: Running) -> None:
    """Reports count by their own moment: a failure told after a later success is history (replay rule 8)."""
    collector = await registered(resolver)
    await collector.beat(AT, report(SUCCEEDED))
    answer = await collector.beat(AT - MINUTE, report(FAILED, AT - MINUTE))
    assert (answer.consecutive_failures, answer.last_success) == (0, timestamp(AT))
    [standing] = await look(resolver.parts.db, "ten_synth_a", MINUTE)
    assert standing.last_run == AT
    assert standing.last_report is not None
    assert standing.last_report["outcome"] == "succeeded"


async def test_the_same_heartbeat_again_is_recorded_once(
    resolver: Running, superuser: Rows
) -> None:
    """Keyed by instance and moment, also where many come at once; the answer is the same."""
    collector = await registered(resolver)
    run = report(FAILED, error=pb.RunError(code="UPSTREAM_503", retryable=True))
    answers = await gathered(*(collector.beat(AT, run) for _ in range(8)))
    assert {answer.consecutive_failures for answer in answers} == {1}
    rows = superuser.execute("select run from collector_heartbeat").fetchall()
    assert [row["run"]["error"] for row in rows] == [{"code": "UPSTREAM_503", "retryable": True}]


async def test_what_each_source_came_to_is_kept(resolver: Running) -> None:
    """An operator sees the counts of the newest run."""
    collector = await registered(resolver)
    source = pb.SourceRun(
        source_id="ten_synth_a.src_one", planned=5, kept=4, submitted=3, put_off=2, poison=1
    )
    await collector.beat(AT, report(PARTIAL, captures_submitted=3, sources=[source]))
    [standing] = await look(resolver.parts.db, "ten_synth_a", MINUTE)
    assert standing.last_report is not None
    sources: Any = standing.last_report["sources"]
    [told] = sources
    assert (told["planned"], told["kept"], told["poison"], told["error"]) == (5, 4, 1, None)


async def test_receipts_come_back_with_the_heartbeat(resolver: Running) -> None:
    """In the order asked for, as `BatchGetReceipts` gives them."""
    collector = await registered(resolver)
    await collector.put()
    receipts = [
        await collector.submit(capture(captured_at=timestamp(AT + number * MINUTE)))
        for number in range(3)
    ]
    names = [receipt.receipt_id for receipt in reversed(receipts)]
    answer = await collector.beat(AT, receipt_ids=names)
    assert [receipt.receipt_id for receipt in answer.receipts] == names
    assert list(answer.receipts) == await collector.receipts(names)


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({"instance_id": "ci_two"}, Code.TENANT_SCOPE_DENIED),
        ({"receipt_ids": ["rcp_none"]}, Code.NOT_FOUND),
        ({"at": datetime.now(UTC) + timedelta(days=1)}, Code.VALIDATION_FAILED),
        ({"run": report(FAILED, started_at=timestamp(AT + MINUTE))}, Code.VALIDATION_FAILED),
        ({"run": pb.RunReport()}, Code.VALIDATION_FAILED),
        (
            {"run": report(FAILED, sources=[pb.SourceRun(source_id="ten_synth_a.src_two")])},
            Code.SOURCE_SCOPE_DENIED,
        ),
        (
            {"run": report(FAILED, sources=[pb.SourceRun(source_id="ten_synth_b.src_one")])},
            Code.TENANT_SCOPE_DENIED,
        ),
    ],
)
async def test_a_refused_heartbeat_is_not_recorded(
    resolver: Running, superuser: Rows, other: dict[str, Any], code: Code
) -> None:
    """Who says it, of which sources, and when it can have been."""
    collector = await registered(resolver)
    assert (await refusal(collector.beat(**({"at": AT} | other)))).code is code
    assert superuser.execute("select from collector_heartbeat").fetchall() == []


async def test_another_instance_s_receipt_is_refused(resolver: Running) -> None:
    """Receipts are owned by the stable instance, by whatever method they are asked for."""
    collector = await registered(resolver)
    await collector.put()
    receipt = await collector.submit(capture())
    other = await registered(resolver, instance="ci_two")
    refused = await refusal(other.beat(AT, receipt_ids=[receipt.receipt_id], instance_id="ci_two"))
    assert refused.code is Code.INSTANCE_SCOPE_DENIED


async def test_an_instance_registers_first(resolver: Running) -> None:
    """UNKNOWN_INSTANCE, also where another tenant has one of that name."""
    await registered(resolver, tenant="ten_synth_b")
    collector = await resolver.collector()
    refused = await refusal(collector.beat(AT))
    assert (refused.code, refused.field) == (Code.UNKNOWN_INSTANCE, "instance_id")


async def test_old_signs_of_life_are_dropped_and_reports_kept(
    resolver: Running, superuser: Rows
) -> None:
    """A collector that lives for years leaves a bounded number of rows beside its reports."""
    collector = await registered(resolver)
    await collector.beat(AT, report(SUCCEEDED))
    for second in range(1, 5):
        await collector.beat(AT + timedelta(seconds=second))
    superuser.execute(
        "update collector_heartbeat set received_at = received_at - interval '1 year'"
    )
    await collector.beat(AT + MINUTE)
    rows = superuser.execute(
        "select at, run_outcome from collector_heartbeat order by at"
    ).fetchall()
    assert [(row["at"], row["run_outcome"]) for row in rows] == [
        (AT, "succeeded"),
        (AT + MINUTE, None),
    ]


async def test_old_reports_are_dropped_but_for_the_last_of_each_source(
    resolver: Running, superuser: Rows
) -> None:
    """What `collectors` tells stays the same: the last report and success of the instance and of each source."""
    collector = await registered(resolver, sources=("src_one", "src_two"))
    failed = pb.RunError(code="UPSTREAM_500")
    runs = [
        (PARTIAL, [of("src_one"), of("src_two", failed)]),
        (SUCCEEDED, [of("src_two")]),
        (FAILED, [of("src_two", failed)]),
        (FAILED, [of("src_two", failed)]),
        (SUCCEEDED, [of("src_one")]),
        (FAILED, [of("src_one", failed)]),
        (FAILED, [of("src_one", failed)]),
    ]
    for minute, (outcome, sources) in enumerate(runs):
        await collector.beat(AT + minute * MINUTE, report(outcome, sources=sources))
    superuser.execute("update collector_heartbeat set received_at = received_at - interval '89 d'")
    await collector.beat(AT + timedelta(hours=1), report(FAILED))
    assert len(minutes(superuser)) == len(runs) + 1
    superuser.execute("update collector_heartbeat set received_at = received_at - interval '2 d'")
    answer = await collector.beat(AT + timedelta(hours=2), report(FAILED))
    # src_two: last success 1, last report 3; src_one and the instance: last success 4, last report 6
    assert minutes(superuser) == [1, 3, 4, 6, 60, 120]
    assert answer.last_success.ToDatetime(tzinfo=UTC) == AT + 4 * MINUTE


async def test_reports_are_dropped_in_bounded_numbers_once_a_day(
    resolver: Running, superuser: Rows
) -> None:
    """Those of years go day by day, at an instance's first report of the day; other tenants' stay."""
    collector = await registered(resolver)
    other = await registered(resolver, tenant="ten_synth_b")
    for minute in range(10):
        await collector.beat(AT + minute * MINUTE, report(FAILED))
        await other.beat(AT + minute * MINUTE, report(FAILED))
    superuser.execute("update collector_heartbeat set received_at = received_at - interval '1 y'")
    assert await dropped(resolver, at_most=4) == 4
    of_today = "update collector_heartbeat set received_at = clock_timestamp() + %s where at = %s"
    for minute, received, expected in ((9, MINUTE, 3), (8, MINUTE, 0), (8, -400 * DAY, 2)):
        superuser.execute(of_today, (received, AT + minute * MINUTE))
        assert await dropped(resolver, at_most=3) == expected
    rows = superuser.execute("select tenant_id from collector_heartbeat").fetchall()
    assert Counter(row["tenant_id"] for row in rows) == {"ten_synth_a": 1, "ten_synth_b": 10}


async def dropped(resolver: Running, at_most: int) -> int:
    """How many reports of the instance are dropped now."""
    kept = timedelta(days=90)
    async with resolver.parts.db.transaction("ten_synth_a") as conn:
        return await drop_old_reports(conn, "ten_synth_a", "ci_one", kept, at_most)


def of(source: str, error: pb.RunError | None = None) -> pb.SourceRun:
    """What a run came to for a source."""
    return pb.SourceRun(source_id=f"ten_synth_a.{source}", error=error)


def minutes(superuser: Rows) -> list[int]:
    """When the instance reported."""
    rows = superuser.execute("select at from collector_heartbeat order by at").fetchall()
    return [(row["at"] - AT) // MINUTE for row in rows]


async def test_heartbeats_of_one_instance_at_once_are_all_recorded(
    resolver: Running, superuser: Rows
) -> None:
    """Two processes of one instance, each with moments of its own, do not hinder each other."""
    collector = await registered(resolver)
    moments = [AT + timedelta(microseconds=number) for number in range(20)]
    answers = await gathered(
        *(collector.beat(moment, report(FAILED, AT)) for moment in moments for _ in range(2))
    )
    assert max(answer.consecutive_failures for answer in answers) == len(moments)
    assert len(superuser.execute("select from collector_heartbeat").fetchall()) == len(moments)
