"""The use cases of intake but for the bytes: register, submit (AW-02), read receipts, hand a capture to the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.ids import new_id
from prw_base.principal import Principal, Role
from prw_base.server.database import Connection, Database
from prw_resolver.access.service import source_scope
from prw_resolver.extraction.model import Captured
from prw_resolver.identity.store import StoredOutcome, outcomes
from prw_resolver.intake import store
from prw_resolver.intake.evidence import rebuild
from prw_resolver.intake.model import LEASE, Instance, Submission
from prw_resolver.intake.receipts import (
    KeptReceipt,
    Receipt,
    ReceiptStatus,
    status_of,
)
from prw_resolver.jobs.model import StageState
from prw_resolver.jobs.service import defer_resolution, stage_states
from prw_resolver.jobs.wake import WAKE
from prw_resolver.objects.port import ObjectStore
from prw_resolver.vocabulary.service import active_generation


@dataclass(frozen=True, slots=True)
class Intake:
    """What the use cases work with."""

    db: Database
    objects: ObjectStore
    artifact_limit: int
    """The greatest length of one artifact, in bytes."""
    upload_lifetime: timedelta = timedelta(seconds=300)
    """How long a declared upload may be made."""
    put_limit: timedelta = timedelta(seconds=120)
    """How long the bytes of one upload may take to come in."""
    clock_skew: timedelta = timedelta(minutes=5)
    """How far a collector's clock may be ahead of ours."""
    lease: timedelta = LEASE
    """How long a heartbeat keeps a long-running instance live."""
    signs_of_life_kept: timedelta = timedelta(days=1)
    """How long heartbeats without a report are kept."""
    reports_kept: timedelta = timedelta(days=90)
    """How long reports of runs are kept that a newer one has replaced."""
    reports_dropped_at_once: int = 5000
    """How many of them one heartbeat drops."""


@dataclass(frozen=True, slots=True)
class Registered:
    """What an instance is bound to, whatever it asked for."""

    instance_id: str
    tenant_id: str
    catalog_id: str
    granted_sources: tuple[str, ...]
    lease: timedelta = LEASE


async def register(intake: Intake, principal: Principal, instance: Instance) -> Registered:
    """Record an instance; an upsert by instance that never widens a grant (if_collector_bootstrap).

    ATTRIBUTION_DENIED for another worker, INSTANCE_SCOPE_DENIED for another instance, SOURCE_SCOPE_DENIED or
    TENANT_SCOPE_DENIED for a target that is not granted.
    """
    worker_id, instance_id = machine(principal)
    if instance.worker_id != worker_id:
        raise PrwError(Code.ATTRIBUTION_DENIED, "not the caller's worker", field="worker_id")
    if instance.instance_id != instance_id:
        raise PrwError(Code.INSTANCE_SCOPE_DENIED, "not the caller's instance", field="instance_id")

    async def keep(conn: Connection) -> None:
        for index, target in enumerate(instance.targets):
            await source_scope(conn, principal, target, f"targets[{index}]")
        await store.put_instance(conn, principal.tenant_id, instance)

    await intake.db.run(keep, principal.tenant_id)
    granted = tuple(sorted(principal.sources))
    tenant_id, catalog_id = principal.tenant_id, principal.catalog_id
    return Registered(instance_id, tenant_id, catalog_id, granted, intake.lease)


def machine(principal: Principal) -> tuple[str, str]:
    """The caller's worker and instance; ATTRIBUTION_DENIED where the binding names none."""
    if principal.worker_id is None or principal.instance_id is None:
        raise PrwError(Code.ATTRIBUTION_DENIED, "the caller's binding names no worker")
    return principal.worker_id, principal.instance_id


async def submit(intake: Intake, principal: Principal, submission: Submission) -> Receipt:
    """Make a capture durable together with its receipt and its job (if_capture_submit).

    The same capture again gives the same receipt, replayed; IDEMPOTENCY_CONFLICT where its key was used for another
    body. A refused capture has persisted nothing.
    """
    machine(principal)
    submission.check(datetime.now(UTC) + intake.clock_skew)

    async def keep(conn: Connection) -> tuple[KeptReceipt, bool]:
        return await _keep(conn, principal, submission)

    receipt, replayed = await intake.db.run(keep, principal.tenant_id)
    fault("intake.after_commit")
    WAKE.set()
    if replayed:
        [answer] = await _answers(intake, principal.tenant_id, [receipt])
        return replace(answer, replayed=True)
    return Receipt(
        receipt.receipt_id, receipt.capture_id, receipt.received_at, ReceiptStatus.STORED
    )


async def _keep(
    conn: Connection, principal: Principal, submission: Submission
) -> tuple[KeptReceipt, bool]:
    await source_scope(conn, principal, submission.source_id, "capture.source_id")
    former = await _former(conn, principal, submission)
    if former is not None:
        return former, True
    await _check_stored(conn, principal.tenant_id, submission)
    kept = await _insert(conn, principal, submission)
    if kept is not None:
        return kept, False
    # Another submission took the key after we looked; it has committed, so now it is seen.
    former = await _former(conn, principal, submission)
    if former is None:
        raise PrwError(Code.UNAVAILABLE, "the capture is being submitted by another call")
    return former, True


async def _former(
    conn: Connection, principal: Principal, submission: Submission
) -> KeptReceipt | None:
    worker_id, _ = machine(principal)
    key = submission.idempotency_key(worker_id)
    held = await store.find_by_key(conn, principal.tenant_id, key)
    if held is None:
        return None
    digest, receipt = held
    if digest != submission.body_digest():
        raise PrwError(
            Code.IDEMPOTENCY_CONFLICT,
            "worker, source, native record and captured_at were used for another capture",
            field="capture.captured_at",
        )
    return receipt


async def _check_stored(conn: Connection, tenant_id: str, submission: Submission) -> None:
    sizes = await store.stored_sizes(conn, tenant_id, list(submission.cited()))
    submission.check_stored(sizes)


async def _insert(
    conn: Connection, principal: Principal, submission: Submission
) -> KeptReceipt | None:
    tenant_id, catalog_id = principal.tenant_id, principal.catalog_id
    worker_id, instance_id = machine(principal)
    capture_id = new_id("cap")
    ids = {
        "tenant_id": tenant_id,
        "catalog_id": catalog_id,
        "capture_id": capture_id,
        "worker_id": worker_id,
        "instance_id": instance_id,
        "idempotency_key": submission.idempotency_key(worker_id),
    }
    generation = await _pin(conn, tenant_id, catalog_id)
    received_at = await store.add_capture(conn, submission, ids, generation)
    if received_at is None:
        return None
    await store.add_parts(conn, tenant_id, capture_id, submission)
    receipt = KeptReceipt(new_id("rcp"), capture_id, instance_id, received_at)
    await store.add_receipt(conn, tenant_id, receipt)
    await defer_resolution(conn, tenant_id=tenant_id, catalog_id=catalog_id, capture_id=capture_id)
    fault("intake.before_commit")
    return receipt


async def _pin(conn: Connection, tenant_id: str, catalog_id: str) -> int:
    generation = await active_generation(conn, tenant_id, catalog_id)
    if generation is None:
        # Retryable, so that collectors keep what they have until an operator has published.
        raise PrwError(
            Code.UNAVAILABLE,
            f"catalogue {catalog_id!r} has no vocabulary yet; run `prw resolver vocabulary publish`",
            retry_after=timedelta(minutes=1),
        )
    return generation


async def get_receipts(
    intake: Intake, principal: Principal, receipt_ids: Sequence[str]
) -> tuple[Receipt, ...]:
    """The named receipts in that order, with their status as it is now (if_receipt_get).

    A machine reads those of its stable instance, a viewer any of the tenant. Unknown: NOT_FOUND; another tenant's:
    TENANT_SCOPE_DENIED; another instance's: INSTANCE_SCOPE_DENIED. One that may not be read fails them all.
    """

    async def find(conn: Connection) -> dict[str, KeptReceipt]:
        found = await store.find_receipts(conn, principal.tenant_id, receipt_ids)
        absent = [name for name in receipt_ids if name not in found]
        if absent:
            raise await _absent(conn, absent)
        return found

    held = await intake.db.run(find, principal.tenant_id, read_only=True)
    for receipt in held.values():
        _check_owner(principal, receipt)
    return await _answers(intake, principal.tenant_id, [held[name] for name in receipt_ids])


async def _absent(conn: Connection, receipt_ids: Sequence[str]) -> PrwError:
    if await store.receipts_elsewhere(conn, receipt_ids):
        return PrwError(Code.TENANT_SCOPE_DENIED, "the receipt belongs to another tenant")
    return PrwError(Code.NOT_FOUND, f"no receipt {receipt_ids[0]!r}")


def _check_owner(principal: Principal, receipt: KeptReceipt) -> None:
    if principal.has_role(Role.VIEWER) or principal.instance_id == receipt.instance_id:
        return
    raise PrwError(Code.INSTANCE_SCOPE_DENIED, "the receipt belongs to another instance")


async def _answers(
    intake: Intake, tenant_id: str, receipts: Sequence[KeptReceipt]
) -> tuple[Receipt, ...]:
    captures = [receipt.capture_id for receipt in receipts]

    async def progress(
        conn: Connection,
    ) -> tuple[Mapping[str, StageState], Sequence[StoredOutcome]]:
        return await stage_states(conn, captures), await outcomes(conn, tenant_id, captures)

    states, decided = await intake.db.run(progress, tenant_id, read_only=True)
    return tuple(_answer(receipt, states, decided) for receipt in receipts)


def _answer(
    kept: KeptReceipt, states: Mapping[str, StageState], decided: Sequence[StoredOutcome]
) -> Receipt:
    records = tuple(held for held in decided if held.capture_id == kept.capture_id)
    status = status_of(states.get(kept.capture_id, StageState()), records)
    return Receipt(kept.receipt_id, kept.capture_id, kept.received_at, status, records=records)


async def load_capture(
    db: Database, objects: ObjectStore, tenant_id: str, capture_id: str
) -> Captured | None:
    """A capture with its bytes, for the worker; None where the tenant has none of that id.

    No transaction is open while the bytes are read. NOT_FOUND where an object is missing, DIGEST_MISMATCH where one
    is damaged, STORAGE_UNAVAILABLE where the store does not answer.
    """
    async with db.transaction(tenant_id, read_only=True) as conn:
        row = await store.find_capture(conn, tenant_id, capture_id)
    if row is None:
        return None
    evidence = await rebuild(objects, tenant_id, row["document"])
    return Captured(
        tenant_id=tenant_id,
        catalog_id=row["catalog_id"],
        capture_id=capture_id,
        generation=row["identity_generation"],
        evidence=evidence,
    )
