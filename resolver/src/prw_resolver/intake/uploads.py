"""The use cases of evidence bytes: declare an upload, and put its bytes (if_artifact_upload)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from datetime import datetime

from prw.errors import Code, PrwError
from prw_base.ids import derived_id
from prw_base.principal import Principal
from prw_base.server.database import Connection
from prw_resolver.access.service import source_scope
from prw_resolver.intake import store
from prw_resolver.intake.model import Declared, Upload
from prw_resolver.intake.service import Intake, machine
from prw_resolver.objects.model import ObjectKey, ObjectMeta


async def declare(
    intake: Intake, principal: Principal, source_id: str, meta: ObjectMeta
) -> Declared:
    """Say what will be uploaded, and learn whether the tenant has it already.

    Declared again it is the same upload, with more time. ATTRIBUTION_DENIED where no source is named,
    SOURCE_SCOPE_DENIED, TENANT_SCOPE_DENIED, ARTIFACT_TOO_LARGE; IMMUTABLE_METADATA_CONFLICT where the bytes are
    stored with other metadata, which the error's details name.
    """
    _, instance_id = machine(principal)
    if not source_id:
        raise PrwError(Code.ATTRIBUTION_DENIED, "name the source", field="source_id")
    check_size(intake, meta.size)
    fields = {
        "upload_id": derived_id("upl", principal.tenant_id, instance_id, source_id, meta.sha256),
        "source_id": source_id,
        "instance_id": instance_id,
        "sha256": meta.sha256,
        "bytes": meta.size,
        "media_type": meta.media_type,
    }

    async def keep(conn: Connection) -> tuple[bool, datetime]:
        await source_scope(conn, principal, source_id)
        held = await store.find_artifact(conn, principal.tenant_id, meta.sha256)
        if held is not None:
            meta.same_or_conflict(held)
        lifetime = intake.upload_lifetime
        until = await store.declare_upload(conn, principal.tenant_id, fields, lifetime)
        return held is not None, until

    stored, expires_at = await intake.db.run(keep, principal.tenant_id)
    return Declared(str(fields["upload_id"]), stored, expires_at)


async def put(
    intake: Intake, principal: Principal, upload_id: str, chunks: AsyncIterable[bytes]
) -> ObjectMeta:
    """Store the bytes of a declared upload; once this returns they are verified and durable.

    Who may put them is what the stored upload says. NOT_FOUND where the tenant has no such upload or it has expired,
    INSTANCE_SCOPE_DENIED where another instance declared it, DIGEST_MISMATCH, IMMUTABLE_METADATA_CONFLICT,
    STORAGE_UNAVAILABLE; UNAVAILABLE where the bytes take longer than `Intake.put_limit`, whatever deadline the caller
    has set. No transaction is open while they come in.
    """
    upload = await _owned(intake, principal, upload_id)
    meta = ObjectMeta(upload.sha256, upload.size, upload.media_type)
    key = ObjectKey(principal.tenant_id, upload.sha256)
    try:
        async with asyncio.timeout(intake.put_limit.total_seconds()):
            await intake.objects.put_if_absent(key, meta, chunks)
    except TimeoutError as late:
        raise PrwError(
            Code.UNAVAILABLE, f"the bytes did not come within {intake.put_limit}"
        ) from late

    async def record(conn: Connection) -> None:
        await store.add_artifact(conn, principal.tenant_id, meta)

    await intake.db.run(record, principal.tenant_id)
    return meta


async def _owned(intake: Intake, principal: Principal, upload_id: str) -> Upload:
    async def find(conn: Connection) -> tuple[Upload, bool]:
        found = await store.find_upload(conn, principal.tenant_id, upload_id)
        if found is None:
            raise _no_upload(f"no upload {upload_id!r}; declare it first")
        if found[0].instance_id != principal.instance_id:
            raise PrwError(
                Code.INSTANCE_SCOPE_DENIED,
                "another instance declared the upload",
                field="upload_id",
            )
        await source_scope(conn, principal, found[0].source_id)
        return found

    upload, expired = await intake.db.run(find, principal.tenant_id, read_only=True)
    if expired:
        raise _no_upload("the upload has expired; declare it again")
    check_size(intake, upload.size)
    return upload


def _no_upload(message: str) -> PrwError:
    return PrwError(Code.NOT_FOUND, message, field="upload_id")


def check_size(intake: Intake, size: int) -> None:
    """Refuse with ARTIFACT_TOO_LARGE what is longer than the limit."""
    if size > intake.artifact_limit:
        raise PrwError(
            Code.ARTIFACT_TOO_LARGE,
            f"{size} bytes; the limit is {intake.artifact_limit}",
            field="bytes",
        )
