"""Which invariants are looked at, and what to do where one does not hold (state, "Invariants")."""

from __future__ import annotations

from datetime import timedelta

from prw_base.findings import Finding
from prw_base.server.database import Database
from prw_resolver.doctor import store

TIMEOUT = timedelta(minutes=10)
"""Of one check, which reads whole tables."""

_RESTORE = "events or facts were written or lost outside of the writer: restore from a backup, and keep this database"
_REBUILD = "rebuild this consumer's projection from an export: `prw product rebuild`"
_EXPORT = "what it reads next is gone: let its rebuild begin again from a new export"
_FENCE = "a history that the control plane does not know: restore the control folder, or restore this database"

CHECKS = {
    "i1_positions": _RESTORE,
    "i2_event_without_fact": _RESTORE,
    "i2_fact_without_event": _RESTORE,
    "i2_heads": _RESTORE,
    "i4_consumers": _REBUILD,
    "i4_leases": _EXPORT,
    "i6_reports": _REBUILD,
    "floor": _RESTORE,
    "epochs": _FENCE,
}
"""Every check by its name, with what to do about what it finds."""


async def examine(database: Database, history_epoch: int) -> list[Finding]:
    """Everything that is found in the streams of every tenant, as of one moment. Changes nothing.

    ``history_epoch`` is the control plane's: the database's own word is not taken for it.
    """
    found = list[Finding]()
    async with database.transaction(None, TIMEOUT, read_only=True, snapshot=True) as conn:
        for name, remedy in CHECKS.items():
            found += await store.check(conn, name, remedy, history_epoch)
    return found
