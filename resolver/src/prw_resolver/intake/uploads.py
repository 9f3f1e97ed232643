"""The use cases of evidence bytes: declare an upload, and put its bytes (if_artifact_upload)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable

from prw.errors import Code, PrwError
from prw_base.ids import derived_id
from prw_base.principal import Principal
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
    async with intake.db.transaction(principal.tenant_id) as conn:
        await source_scope(conn, principal, source_id)
        held = await store.find_artifact(conn, principal.tenant_id, meta.sha256)
        if held is not None:
            meta.same_or_conflict(held)
        expires_at = await store.declare_upload(
            conn, principal.tenant_id, fields, intake.upload_lifetime
        )
    return Declared(str(fields["upload_id"]), held is not None, expires_at)


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
    async with intake.db.transaction(principal.tenant_id) as conn:
        await store.add_artifact(conn, principal.tenant_id, meta)
    return meta


async def _owned(intake: Intake, principal: Principal, upload_id: str) -> Upload:
    async with intake.db.transaction(principal.tenant_id, read_only=True) as conn:
        found = await store.find_upload(conn, principal.tenant_id, upload_id)
        if found is None:
            raise PrwError(
                Code.NOT_FOUND, f"no upload {upload_id!r}; declare it first", field="upload_id"
            )
        upload, expired = found
        if upload.instance_id != principal.instance_id:
            raise PrwError(
                Code.INSTANCE_SCOPE_DENIED,
                "another instance declared the upload",
                field="upload_id",
            )
        await source_scope(conn, principal, upload.source_id)
    if expired:
        raise PrwError(
            Code.NOT_FOUND, "the upload has expired; declare it again", field="upload_id"
        )
    check_size(intake, upload.size)
    return upload


def check_size(intake: Intake, size: int) -> None:
    """Refuse with ARTIFACT_TOO_LARGE what is longer than the limit."""
    if size > intake.artifact_limit:
        raise PrwError(
            Code.ARTIFACT_TOO_LARGE,
            f"{size} bytes; the limit is {intake.artifact_limit}",
            field="bytes",
        )
