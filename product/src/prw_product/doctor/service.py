"""Which invariants are looked at, and what to do where one does not hold (state, "Invariants")."""

from __future__ import annotations

from datetime import timedelta

from prw_base.findings import Finding
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.doctor import store
from prw_product.publish.store import enter_serving

TIMEOUT = timedelta(minutes=10)
"""Of one check, which reads whole tables."""

_REBUILD = "the projection is damaged: `prw product rebuild`"
_REFUSED = "upgrade this program and follow again, or rebuild from an export beyond it"

CHECKS = {
    "i3_missing": _REBUILD,
    "i8_not_processed": _REBUILD,
    "progress_stands": "follow: the next change moves it",
    "parked_pairs": _REBUILD,
    "needs_without_event": _REBUILD,
    "i8_states": _REBUILD,
    "public_listings": _REBUILD,
    "generations": _REBUILD,
    "refused": _REFUSED,
}
"""Every check by its name, with what to do about what it finds."""


async def examine(database: Database, scope: Scope) -> list[Finding]:
    """Everything that is found in the generation that serves, as of one moment. Changes nothing.

    A catalogue that nothing serves yet has nothing to be found in.
    """
    found = list[Finding]()
    tenant = scope.tenant_id
    async with database.transaction(tenant, TIMEOUT, read_only=True, snapshot=True) as conn:
        generation = await enter_serving(conn, scope)
        if generation is not None:
            for name, remedy in CHECKS.items():
                found += await store.check(conn, name, remedy, generation)
    return found
