"""One capture through its stages: each stage's results and its inbox row commit together (if_resolution_job)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from prw_base.faults import fault
from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_resolver.extraction import service as extraction
from prw_resolver.extraction.model import Captured
from prw_resolver.extraction.service import Step
from prw_resolver.identity.retraction import Absence
from prw_resolver.intake.service import load_capture
from prw_resolver.jobs import service as jobs
from prw_resolver.jobs.model import ResolveJob, Stage
from prw_resolver.vocabulary import service as vocabularies
from prw_resolver.worker.failures import TenantMismatch
from prw_resolver.worker.parts import WorkerParts
from prw_sdk.evidence import Presence


async def walk(parts: WorkerParts, job: ResolveJob) -> AsyncGenerator[Stage]:
    """Work the stages that the job has not behind it, each announced before it begins.

    A job that is delivered again does nothing twice: what is in the inbox is passed over, and two deliveries at once
    are told apart by the inbox's key.
    """
    async with parts.db.transaction(job.tenant_id, read_only=True) as conn:
        done = await jobs.done_stages(conn, job)
    waiting = [stage for stage in Stage if stage not in done]
    if not waiting:
        return
    yield waiting[0]
    captured = await _captured(parts, job)
    for stage in waiting:
        yield stage
        await _work(parts, job, stage, captured)


async def _captured(parts: WorkerParts, job: ResolveJob) -> Captured:
    """The capture; its own row says whose it is, and a job that disagrees is refused."""
    stored = await load_capture(parts.db, parts.objects, job.tenant_id, job.capture_id)
    if stored is None:
        raise TenantMismatch(f"tenant {job.tenant_id} has no capture {job.capture_id}")
    if (stored.tenant_id, stored.catalog_id) != (job.tenant_id, job.catalog_id):
        raise TenantMismatch(f"capture {job.capture_id} is not of catalogue {job.catalog_id}")
    return replace(stored, attempt_group=job.attempt_group)


async def _work(parts: WorkerParts, job: ResolveJob, stage: Stage, captured: Captured) -> None:
    match stage:
        case Stage.EXTRACT:
            await _commit(parts, job, stage, await extraction.extract(parts.readers, captured))
            fault("worker.after_extract")
        case Stage.NORMALISE:
            await _commit(parts, job, stage, await extraction.normalise(parts.db, captured))
            fault("worker.after_normalise")
        case Stage.IDENTIFY:
            fault("worker.before_identify")
            await _identify(parts, job, captured)
            fault("worker.after_identify")


async def _commit(parts: WorkerParts, job: ResolveJob, stage: Stage, step: Step) -> None:
    async def results_and_inbox(conn: Connection) -> None:
        if await jobs.mark_done(conn, job, stage):
            await step(conn)

    await parts.db.run(results_and_inbox, job.tenant_id)


async def _identify(parts: WorkerParts, job: ResolveJob, captured: Captured) -> None:
    async with parts.db.transaction(job.tenant_id, read_only=True) as conn:
        records = await extraction.load_normalised(conn, captured)
        vocabulary = await vocabularies.load(conn, job.tenant_id, job.catalog_id)
    job_id = job.stage_id(Stage.IDENTIFY)
    if captured.evidence.presence is Presence.ABSENT:
        await parts.absent(_absence(captured), vocabulary, job_id=job_id)
        return
    for number, record in enumerate(records, start=1):
        await parts.identify(record, vocabulary, job_id=job_id, last=number == len(records))
    if not records:
        await _commit(parts, job, Stage.IDENTIFY, _nothing)


def _absence(captured: Captured) -> Absence:
    return Absence(
        Scope(captured.tenant_id, captured.catalog_id),
        captured.evidence.source_id,
        captured.evidence.native_record_id,
        captured.capture_id,
        captured.evidence.captured_at,
    )


async def _nothing(_conn: Connection) -> None:
    """A capture without records has no results but that it is done."""
