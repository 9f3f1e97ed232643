"""The use cases of checkpoints, for collectors that keep nothing between runs (replay rules 4 and 7)."""

from __future__ import annotations

from typing import Any, Final

from prw.errors import Code, PrwError
from prw_base.faults import fault
from prw_base.principal import Principal
from prw_base.server.database import Connection, Database
from prw_resolver.access.service import source_scope
from prw_resolver.intake import store
from prw_resolver.intake.model import Checkpoint, CheckpointKey
from prw_resolver.intake.service import Intake, machine

_LONGEST_DETAIL: Final = 2048
"""Bytes; gRPC keeps all of an error within 8 KiB."""


async def get(intake: Intake, principal: Principal, key: CheckpointKey) -> Checkpoint:
    """The persisted checkpoint; revision 0 where there is none. SOURCE_SCOPE_DENIED, TENANT_SCOPE_DENIED."""
    machine(principal)

    async def find(conn: Connection) -> Checkpoint | None:
        await source_scope(conn, principal, key.source_id, "key.source_id")
        return await store.find_checkpoint(conn, principal.tenant_id, key)

    found = await intake.db.run(find, principal.tenant_id, read_only=True)
    return found or Checkpoint(key)


async def advance(
    intake: Intake, principal: Principal, expected: int, following: Checkpoint
) -> Checkpoint:
    """Persist the next state with everything that is put off, if the checkpoint has the expected revision.

    The very same step again, whose answer was lost, gives the same answer. CHECKPOINT_CONFLICT with the winner in its
    details where another run came first; SOURCE_SCOPE_DENIED, TENANT_SCOPE_DENIED, VALIDATION_FAILED.
    """
    machine(principal)
    following.check()

    async def keep(conn: Connection) -> Checkpoint:
        await source_scope(conn, principal, following.key.source_id, "key.source_id")
        return await _keep(conn, principal.tenant_id, expected, following)

    kept = await intake.db.run(keep, principal.tenant_id)
    fault("checkpoints.after_commit")
    return kept


async def _keep(
    conn: Connection, tenant_id: str, expected: int, following: Checkpoint
) -> Checkpoint:
    advanced = await store.advance_checkpoint(conn, tenant_id, expected, following)
    fault("checkpoints.before_commit")
    if advanced is not None:
        return advanced
    winner = await store.find_checkpoint(conn, tenant_id, following.key)
    winner = winner or Checkpoint(following.key)
    if winner.revision == expected + 1 and winner.says(following):
        return winner
    raise PrwError(
        Code.CHECKPOINT_CONFLICT,
        f"the checkpoint has revision {winner.revision}, not {expected}",
        field="expected_revision",
        details=_told(winner),
    )


def _told(winner: Checkpoint) -> dict[str, str]:
    """What fits beside an error; a longer state is asked for."""
    told = {"revision": str(winner.revision)}
    fits = len(winner.state.encode()) <= _LONGEST_DETAIL
    return told | ({"state": winner.state} if fits else {})


async def look(db: Database, tenant_id: str) -> list[dict[str, Any]]:
    """Every checkpoint of a tenant, for an operator."""
    async with db.transaction(tenant_id, read_only=True) as conn:
        return await store.checkpoints(conn, tenant_id)
