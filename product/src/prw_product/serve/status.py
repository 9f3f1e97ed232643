"""What an operator asks of a projection: how far it is, what holds it, how much is public."""

from __future__ import annotations

from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_product.apply.store import find_hold, read_counts
from prw_product.follow.store import Told, find_condition
from prw_product.publish.store import enter_serving
from prw_product.rebuild.store import Told as Rebuild
from prw_product.rebuild.store import last_rebuild
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
    "held_by",
    "following",
    "trouble",
    "told_at",
    "rebuild",
)


async def read_status(database: Database, scope: Scope) -> list[tuple[object, ...]]:
    """One row: the serving generation, what holds it, and how following goes as it last told.

    None before anything was tried.
    """

    async def work(conn: Connection) -> list[tuple[object, ...]]:
        generation, told = await enter_serving(conn, scope), await find_condition(conn, scope)
        rebuilt = _rebuilt(await last_rebuild(conn, scope))
        held = None if generation is None else await read_counts(conn, generation)
        if generation is None or held is None:
            return [(*_unbegun(scope, told), rebuilt)] if told else []
        counts = (held.progress, held.parked, held.poison, held.dead_letters, held.ignored)
        public = await count_public(conn, scope)
        named = (scope.tenant_id, scope.catalog_id, generation.number, generation.history_epoch)
        hold = await find_hold(conn, generation)
        held_by = None if hold is None else str(hold)
        return [(*named, *counts, *public, held.updated_at, held_by, *_told(told), rebuilt)]

    return await database.run(work, scope.tenant_id, read_only=True)


def _told(told: Told | None) -> tuple[object, ...]:
    if told is None:
        return None, None, None
    trouble = f"{told.code}: {told.message}" if told.code else None
    return told.condition.value, trouble, told.told_at


def _rebuilt(told: Rebuild | None) -> str | None:
    """The newest rebuild in a few words."""
    if told is None:
        return None
    at = f"generation {told.generation}, {told.phase} at {told.told_at:%Y-%m-%d %H:%M:%S}"
    return f"{at}: {told.message}" if told.message else at


def _unbegun(scope: Scope, told: Told) -> tuple[object, ...]:
    """A follower that has never got so far as to begin."""
    blank = [None] * (len(COLUMNS) - 6)
    return (scope.tenant_id, scope.catalog_id, *blank, *_told(told))
