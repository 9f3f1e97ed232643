"""What an operator asks of a projection: how far it is, what holds it, how much is public."""

from __future__ import annotations

from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_product.apply.store import read_counts
from prw_product.publish.store import enter_serving
from prw_product.serve.store import count_public

COLUMNS = (
    "tenant_id",
    "catalog_id",
    "generation",
    "history_epoch",
    "progress",
    "parked",
    "poison",
    "dead_letters",
    "ignored",
    "public_items",
    "public_listings",
    "updated_at",
)


async def read_status(database: Database, scope: Scope) -> list[tuple[object, ...]]:
    """One row for the serving generation, or none before anything was followed."""

    async def work(conn: Connection) -> list[tuple[object, ...]]:
        generation = await enter_serving(conn, scope)
        if generation is None:
            return []
        held = await read_counts(conn, generation)
        if held is None:
            return []
        counts = (held.progress, held.parked, held.poison, held.dead_letters, held.ignored)
        public = await count_public(conn, scope)
        named = (scope.tenant_id, scope.catalog_id, generation.number, generation.history_epoch)
        return [(*named, *counts, *public, held.updated_at)]

    return await database.run(work, scope.tenant_id, read_only=True)
