"""Look-up of receipts (if_receipt_get), and what their status is computed from."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from prw.collector.v1 import evidence_pb2 as pb
from prw.errors import Code
from prw_base.principal import Role
from prw_resolver.identity.store import StoredOutcome
from prw_resolver.intake.receipts import ReceiptStatus, status_of
from prw_resolver.jobs.model import Stage, StageState
from tests.resolver.collecting import Running, capture, refusal

Rows = psycopg.Connection[dict[str, Any]]
ALL = frozenset(Stage)


async def receipt_of(resolver: Running, **other: Any) -> pb.Receipt:
    """A receipt of ci_one."""
    collector = await resolver.collector()
    await collector.put()
    return await collector.submit(capture(**other))


async def test_a_collector_reads_its_receipts_one_and_many(resolver: Running) -> None:
    """Many come in the order asked for."""
    first = await receipt_of(resolver)
    second = await receipt_of(resolver, native_record_id="https://shop.example/p/2")
    collector = await resolver.collector()
    assert (await collector.receipt(first.receipt_id)).capture_id == first.capture_id
    read = await collector.receipts([second.receipt_id, first.receipt_id])
    assert [held.capture_id for held in read] == [second.capture_id, first.capture_id]
    assert not any(held.replayed for held in read)


async def test_a_rotated_client_reads_its_instance_s_receipts(resolver: Running) -> None:
    """Receipts belong to the stable instance, not to the credential."""
    receipt = await receipt_of(resolver)
    rotated = await resolver.collector()
    assert (await rotated.receipt(receipt.receipt_id)).receipt_id == receipt.receipt_id


async def test_an_unknown_receipt_is_not_found(resolver: Running) -> None:
    """Nothing under that name, anywhere."""
    collector = await resolver.collector()
    assert (await refusal(collector.receipt("rcp_nothing"))).code is Code.NOT_FOUND


async def test_another_instance_s_receipt_is_denied(resolver: Running) -> None:
    """Same tenant, same worker, same source: still not its own."""
    receipt = await receipt_of(resolver)
    other = await resolver.collector(instance="ci_two")
    refused = await refusal(other.receipt(receipt.receipt_id))
    assert refused.code is Code.INSTANCE_SCOPE_DENIED


async def test_another_tenant_s_receipt_is_denied(resolver: Running) -> None:
    """The denial says whose it is not, and nothing else."""
    receipt = await receipt_of(resolver)
    for stranger in (
        await resolver.collector("ten_synth_b"),
        await resolver.person("ten_synth_b", Role.OPERATOR_ADMIN),
    ):
        refused = await refusal(stranger.receipt(receipt.receipt_id))
        assert refused.code is Code.TENANT_SCOPE_DENIED


async def test_one_receipt_that_may_not_be_read_fails_the_batch(resolver: Running) -> None:
    """A batch is all or nothing."""
    own = await receipt_of(resolver)
    collector = await resolver.collector()
    refused = await refusal(collector.receipts([own.receipt_id, "rcp_nothing"]))
    assert refused.code is Code.NOT_FOUND


async def test_a_viewer_reads_every_receipt_of_the_tenant(resolver: Running) -> None:
    """People read by their role in the tenant."""
    receipt = await receipt_of(resolver)
    viewer = await resolver.person()
    assert (await viewer.receipt(receipt.receipt_id)).capture_id == receipt.capture_id


async def test_a_receipt_tells_what_the_rooms_below_have_done(
    resolver: Running, superuser: Rows
) -> None:
    """Stages done and outcomes are read when asked, never kept in the receipt."""
    receipt = await receipt_of(resolver)
    viewer = await resolver.person()
    ids = {"tenant": "ten_synth_a", "capture": receipt.capture_id}
    inbox = (
        "insert into job_inbox (tenant_id, job_id) values (%(tenant)s, %(capture)s || %(stage)s)"
    )
    superuser.execute(inbox, ids | {"stage": ":extract:0"})
    assert (await viewer.receipt(receipt.receipt_id)).status == pb.RECEIPT_STATUS_RESOLVING
    superuser.execute(
        "insert into record_outcome (tenant_id, capture_id, record_id, catalog_id, listing_id,"
        " outcome, actor_kind, recorded_at)"
        " values (%(tenant)s, %(capture)s, 'r1', 'main', 'lst_1', 'accepted', 'rule', now())",
        ids,
    )
    superuser.execute(inbox, ids | {"stage": ":identify:0"})
    read = await viewer.receipt(receipt.receipt_id)
    assert read.status == pb.RECEIPT_STATUS_RESOLVED
    assert [(record.record_id, record.outcome) for record in read.records] == [("r1", "accepted")]


@pytest.mark.parametrize(
    ("done", "dead", "outcomes", "status"),
    [
        (frozenset(), None, [], ReceiptStatus.STORED),
        (frozenset({Stage.EXTRACT}), None, [], ReceiptStatus.RESOLVING),
        (frozenset({Stage.EXTRACT}), None, ["accepted"], ReceiptStatus.RESOLVING),
        (ALL, None, [], ReceiptStatus.REJECTED),
        (ALL, None, ["rejected", "rejected"], ReceiptStatus.REJECTED),
        (ALL, None, ["rejected", "accepted"], ReceiptStatus.RESOLVED),
        (ALL, None, ["unchanged", "history"], ReceiptStatus.RESOLVED),
        (ALL, None, ["accepted", "in_review"], ReceiptStatus.IN_REVIEW),
        (frozenset({Stage.EXTRACT}), "SCHEMA_INVALID", [], ReceiptStatus.FAILED),
        (ALL, "SCHEMA_INVALID", ["accepted"], ReceiptStatus.FAILED),
    ],
)
def test_a_status_follows_from_stages_and_outcomes(
    done: frozenset[Stage], dead: str | None, outcomes: list[str], status: ReceiptStatus
) -> None:
    """Failure first, then stages, then whatever waits for a person."""
    records = [StoredOutcome("cap", f"r{index}", outcome) for index, outcome in enumerate(outcomes)]
    assert status_of(StageState(done, dead), records) is status
