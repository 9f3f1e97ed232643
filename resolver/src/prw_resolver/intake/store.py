"""The SQL of artifacts, uploads, captures, receipts and instances."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from prw_base.canonical import canonical_json
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.intake.model import (
    Checkpoint,
    CheckpointKey,
    Instance,
    Standing,
    Submission,
    Upload,
)
from prw_resolver.intake.receipts import KeptReceipt
from prw_resolver.objects.model import ObjectMeta

_SQL = Statements("prw_resolver.intake")


def _json(value: object) -> Jsonb:
    return Jsonb(json.loads(canonical_json(value)))


async def stored_sizes(conn: Connection, tenant_id: str, digests: Sequence[str]) -> dict[str, int]:
    """The length of each of `digests` that is stored."""
    rows = await _SQL.rows(conn, "stored_sizes", tenant_id=tenant_id, digests=list(digests))
    return {row["sha256"]: row["bytes"] for row in rows}


async def find_artifact(conn: Connection, tenant_id: str, sha256: str) -> ObjectMeta | None:
    """A stored artifact's metadata, or None."""
    rows = await _SQL.rows(conn, "find_artifact", tenant_id=tenant_id, sha256=sha256)
    return ObjectMeta(sha256, rows[0]["bytes"], rows[0]["media_type"]) if rows else None


async def add_artifact(conn: Connection, tenant_id: str, meta: ObjectMeta) -> None:
    """Record that bytes are durable; twice is once."""
    await _SQL.rows(
        conn,
        "add_artifact",
        tenant_id=tenant_id,
        sha256=meta.sha256,
        bytes=meta.size,
        media_type=meta.media_type,
    )


async def declare_upload(
    conn: Connection, tenant_id: str, upload: Mapping[str, object], lifetime: timedelta
) -> datetime:
    """Record an upload, or renew it; until when it may be made."""
    rows = await _SQL.rows(conn, "declare_upload", tenant_id=tenant_id, lifetime=lifetime, **upload)
    expires_at: datetime = rows[0]["expires_at"]
    return expires_at


async def find_upload(
    conn: Connection, tenant_id: str, upload_id: str
) -> tuple[Upload, bool] | None:
    """An upload of the tenant and whether it has expired, or None."""
    rows = await _SQL.rows(conn, "find_upload", tenant_id=tenant_id, upload_id=upload_id)
    if not rows:
        return None
    row = rows[0]
    expired: bool = row.pop("expired")
    return Upload(size=row.pop("bytes"), **row), expired


async def find_by_key(conn: Connection, tenant_id: str, key: str) -> tuple[str, KeptReceipt] | None:
    """The body digest and the receipt under an idempotency key, or None."""
    rows = await _SQL.rows(conn, "find_by_key", tenant_id=tenant_id, idempotency_key=key)
    if not rows:
        return None
    digest: str = rows[0].pop("body_digest")
    return digest, KeptReceipt(**rows[0])


async def add_capture(
    conn: Connection,
    submission: Submission,
    ids: Mapping[str, object],
    generation: int,
) -> datetime | None:
    """Keep a capture; when it was received, or None where its key is taken.

    `ids` names the tenant, catalogue, capture, worker, instance and the idempotency key.
    """
    rows = await _SQL.rows(
        conn,
        "add_capture",
        source_id=submission.source_id,
        native_record_id=submission.native_record_id,
        captured_at=submission.captured_at,
        body_digest=submission.body_digest(),
        adapter_name=submission.adapter.name,
        adapter_version=submission.adapter.version,
        config=_json(submission.config),
        presence=submission.presence.value,
        generation=generation,
        document=_json(submission.document()),
        **ids,
    )
    return rows[0]["received_at"] if rows else None


async def add_parts(
    conn: Connection, tenant_id: str, capture_id: str, submission: Submission
) -> None:
    """Keep which artifacts a capture cites."""
    parts = submission.parts
    await _SQL.rows(
        conn,
        "add_parts",
        tenant_id=tenant_id,
        capture_id=capture_id,
        roles=[part.role for part in parts],
        digests=[part.sha256 for part in parts],
        cites=[part.cites.sha256 if part.cites else None for part in parts],
    )


async def add_receipt(conn: Connection, tenant_id: str, receipt: KeptReceipt) -> None:
    """Give a capture its receipt."""
    await _SQL.rows(conn, "add_receipt", tenant_id=tenant_id, **asdict(receipt))


async def find_receipts(
    conn: Connection, tenant_id: str, receipt_ids: Sequence[str]
) -> dict[str, KeptReceipt]:
    """Those of the named receipts that are the tenant's, by id."""
    ids = list(receipt_ids)
    rows = await _SQL.rows(conn, "find_receipts", tenant_id=tenant_id, receipt_ids=ids)
    return {row["receipt_id"]: KeptReceipt(**row) for row in rows}


async def receipts_elsewhere(conn: Connection, receipt_ids: Sequence[str]) -> frozenset[str]:
    """Which of the named receipts are another tenant's."""
    rows = await _SQL.rows(conn, "receipts_elsewhere", receipt_ids=list(receipt_ids))
    return frozenset(row["receipt_id"] for row in rows)


async def put_instance(conn: Connection, tenant_id: str, instance: Instance) -> None:
    """Record an instance as it last described itself."""
    values = asdict(instance) | {
        "execution_region": _json(asdict(instance.execution_region)),
        "egress": _json(asdict(instance.egress)),
        "targets": list(instance.targets),
        "capabilities": list(instance.capabilities),
    }
    await _SQL.rows(conn, "put_instance", tenant_id=tenant_id, **values)


async def find_runtime(conn: Connection, tenant_id: str, instance_id: str) -> str | None:
    """How a registered instance is run, or None where it is not registered."""
    row = await _SQL.row(conn, "is_registered", tenant_id=tenant_id, instance_id=instance_id)
    return None if row is None else row["runtime_kind"]


async def add_heartbeat(
    conn: Connection,
    tenant_id: str,
    instance_id: str,
    at: datetime,
    report: Mapping[str, object] | None,
) -> bool:
    """Record a heartbeat with the report of a run, if one came with it; False where it was recorded before."""
    added = await _SQL.run(
        conn,
        "add_heartbeat",
        tenant_id=tenant_id,
        instance_id=instance_id,
        at=at,
        run_outcome=None if report is None else report["outcome"],
        run=None if report is None else _json(report),
    )
    return added == 1


async def drop_old_signs_of_life(
    conn: Connection, tenant_id: str, instance_id: str, kept: timedelta
) -> None:
    """Forget signs of life older than that, but for the newest one."""
    await _SQL.run(
        conn, "drop_old_signs_of_life", tenant_id=tenant_id, instance_id=instance_id, kept=kept
    )


async def drop_old_reports(
    conn: Connection, tenant_id: str, instance_id: str, kept: timedelta, at_most: int
) -> int:
    """At the first report of a day: forget those older than that which say nothing any more; how many they were."""
    values = {"tenant_id": tenant_id, "instance_id": instance_id, "kept": kept}
    return await _SQL.run(conn, "drop_old_reports", **values, at_most=at_most)


async def standings(
    conn: Connection, tenant_id: str, lease: timedelta, instance_id: str | None = None
) -> list[Standing]:
    """How the tenant's instances stand, or that one."""
    rows = await _SQL.rows(
        conn, "standings", tenant_id=tenant_id, lease=lease, instance_id=instance_id
    )
    return [Standing(**row | {"targets": tuple(row["targets"])}) for row in rows]


async def find_checkpoint(
    conn: Connection, tenant_id: str, key: CheckpointKey
) -> Checkpoint | None:
    """A checkpoint, or None where nothing was persisted yet."""
    row = await _SQL.row(conn, "find_checkpoint", tenant_id=tenant_id, **asdict(key))
    return None if row is None else Checkpoint(key, **row)


async def advance_checkpoint(
    conn: Connection, tenant_id: str, expected: int, following: Checkpoint
) -> Checkpoint | None:
    """Persist a state and what is put off, if the checkpoint has the expected revision; None where it has another."""
    row = await _SQL.row(
        conn,
        "next_checkpoint" if expected else "first_checkpoint",
        tenant_id=tenant_id,
        expected=expected,
        state=following.state,
        deferred=Jsonb(list(following.deferred)),
        **asdict(following.key),
    )
    return None if row is None else Checkpoint(following.key, **row)


async def checkpoints(conn: Connection, tenant_id: str) -> list[dict[str, Any]]:
    """Every checkpoint of the tenant, with the number of items that it put off."""
    return await _SQL.rows(conn, "checkpoints", tenant_id=tenant_id)


async def find_capture(conn: Connection, tenant_id: str, capture_id: str) -> dict[str, Any] | None:
    """A capture's row with its document, or None."""
    rows = await _SQL.rows(conn, "find_capture", tenant_id=tenant_id, capture_id=capture_id)
    return rows[0] if rows else None
