"""The use cases of heartbeats: an instance says that it lives, or what a run came to (if_heartbeat)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from prw.errors import Code, PrwError
from prw_base.principal import Principal
from prw_base.server.database import Connection, Database
from prw_resolver.access.service import source_scope
from prw_resolver.intake import store
from prw_resolver.intake.model import Heartbeat, Standing
from prw_resolver.intake.receipts import Receipt
from prw_resolver.intake.service import Intake, get_receipts, machine

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a heartbeat is answered with."""

    standing: Standing
    receipts: tuple[Receipt, ...] = ()


async def hear(intake: Intake, principal: Principal, beat: Heartbeat) -> Heard:
    """Record a heartbeat; the same instance and moment again are recorded once.

    TENANT_SCOPE_DENIED for another instance than the caller's, UNKNOWN_INSTANCE for one that is not registered,
    SOURCE_SCOPE_DENIED for a report on a source that is not granted; receipts fail as they do when asked for alone.
    """
    _, instance_id = machine(principal)
    if beat.instance_id != instance_id:
        raise PrwError(Code.TENANT_SCOPE_DENIED, "not the caller's instance", field="instance_id")
    beat.check(datetime.now(UTC) + intake.clock_skew)
    receipts = await get_receipts(intake, principal, beat.receipt_ids) if beat.receipt_ids else ()

    async def keep(conn: Connection) -> Standing:
        return await _keep(intake, conn, principal, beat)

    heard = Heard(await intake.db.run(keep, principal.tenant_id), receipts)
    if beat.report is not None:
        await _forget_reports(intake, principal.tenant_id, instance_id)
    return heard


async def _forget_reports(intake: Intake, tenant_id: str, instance_id: str) -> None:
    """Drop old reports, apart from the heartbeat: that is recorded whatever becomes of this."""
    kept, at_most = intake.reports_kept, intake.reports_dropped_at_once

    async def drop(conn: Connection) -> int:
        return await store.drop_old_reports(conn, tenant_id, instance_id, kept, at_most)

    try:
        await intake.db.run(drop, tenant_id)
    except PrwError as trouble:
        _log.warning("old reports were not dropped", instance=instance_id, said=str(trouble))


async def _keep(
    intake: Intake, conn: Connection, principal: Principal, beat: Heartbeat
) -> Standing:
    tenant_id, instance_id = principal.tenant_id, beat.instance_id
    for index, source_id in enumerate(beat.sources):
        await source_scope(conn, principal, source_id, f"run.sources[{index}].source_id")
    if await store.find_runtime(conn, tenant_id, instance_id) is None:
        raise PrwError(
            Code.UNKNOWN_INSTANCE, "the instance has not registered", field="instance_id"
        )
    if await store.add_heartbeat(conn, tenant_id, instance_id, beat.at, beat.report):
        kept = intake.signs_of_life_kept
        await store.drop_old_signs_of_life(conn, tenant_id, instance_id, kept)
    [standing] = await store.standings(conn, tenant_id, intake.lease, instance_id)
    return standing


async def look(db: Database, tenant_id: str, lease: timedelta) -> list[Standing]:
    """How every instance of a tenant stands, for an operator; `lease` is how long a heartbeat keeps one live."""
    async with db.transaction(tenant_id, read_only=True) as conn:
        return await store.standings(conn, tenant_id, lease)
