"""The SQL of rebuilds: shadows, what is loaded into them, the cutover, and what is dropped after."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncCopy

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_product.publish.model import MAX_FILTER_BYTES, Generation
from prw_product.rebuild.model import Manifest, Phase, StateDigest

_SQL = Statements("prw_product.rebuild")


@dataclass(frozen=True, slots=True)
class Told:
    """A rebuild as it last told of itself."""

    generation: int
    history_epoch: int
    phase: str
    position: int
    served_position: int | None
    message: str
    started_at: datetime
    told_at: datetime


async def take_turn(conn: Connection, scope: Scope) -> bool:
    """Take the one turn of rebuilding a catalogue; it ends with the connection at the latest."""
    row = await _SQL.row(conn, "take_turn", **scope.ids)
    return row is not None and bool(row["taken"])


async def give_turn(conn: Connection, scope: Scope) -> None:
    """Give the turn back."""
    await _SQL.run(conn, "give_turn", **scope.ids)


async def put_shadow(conn: Connection, manifest: Manifest) -> Generation:
    """Make a shadow generation whose applied position and inbox begin at the export's position."""
    row = await _SQL.row(conn, "make_shadow")
    if row is None:
        raise AssertionError("a shadow has no number")
    shadow = Generation(manifest.scope, row["number"], manifest.history_epoch)
    await _SQL.run(conn, "put_generation", **shadow.ids)
    await _SQL.run(conn, "put_progress", **shadow.ids, position=manifest.position)
    values = {"export_id": manifest.export_id, "position": manifest.position}
    await _SQL.run(conn, "put_rebuild", **shadow.ids, **values)
    return shadow


async def tell(
    conn: Connection,
    shadow: Generation,
    phase: Phase,
    *,
    message: str = "",
    served_position: int | None = None,
) -> None:
    """Note how far a rebuild is."""
    values = {"phase": phase.value, "message": message, "served_position": served_position}
    await _SQL.run(conn, "tell_rebuild", **shadow.ids, **values)


async def last_rebuild(conn: Connection, scope: Scope) -> Told | None:
    """The newest rebuild of a catalogue, or None."""
    row = await _SQL.row(conn, "last_rebuild", **scope.ids)
    return None if row is None else Told(**row)


async def unserved(conn: Connection, scope: Scope) -> list[Generation]:
    """Shadows that nobody builds any more; asked by whoever has the turn."""
    return await _generations(conn, "unserved", scope)


async def retired(conn: Connection, scope: Scope) -> list[Generation]:
    """Retired generations that still hold something."""
    return await _generations(conn, "retired", scope)


async def _generations(conn: Connection, block: str, scope: Scope) -> list[Generation]:
    rows = await _SQL.rows(conn, block, **scope.ids)
    return [Generation(scope, row["generation"], row["history_epoch"]) for row in rows]


async def retire(conn: Connection, generation: Generation) -> None:
    """Let a generation be retired: it never serves again."""
    await _SQL.run(conn, "retire", **generation.ids)


async def give_up_shadow(conn: Connection, shadow: Generation, reason: str) -> bool:
    """Let a shadow be retired, and note why; False where it serves meanwhile, and stays as it is."""
    if await _SQL.run(conn, "give_up_shadow", **shadow.ids) != 1:
        return False
    await tell(conn, shadow, Phase.FAILED, message=reason)
    return True


async def drop(conn: Connection, generation: Generation) -> None:
    """Take away what a retired generation holds."""
    await _SQL.run(conn, "drop_generation", **generation.ids)


async def read_clock(conn: Connection) -> datetime:
    """The database's time."""
    row = await _SQL.row(conn, "read_clock")
    if row is None:
        raise AssertionError("the clock has no answer")
    now: datetime = row["now"]
    return now


async def has_older_readers(conn: Connection, moment: datetime) -> bool:
    """Whether a transaction is open that may read through the pointer as it was before ``moment``."""
    row = await _SQL.row(conn, "older_readers", moment=moment)
    return row is None or row["readers"] > 0


async def has_foreign_rows(conn: Connection, scope: Scope) -> bool:
    """Whether the loaded tables hold rows of another tenant or catalogue."""
    row = await _SQL.row(conn, "foreign_rows", **scope.ids)
    return row is None or bool(row["found"])


def copy(conn: Connection, kind: str) -> AbstractAsyncContextManager[AsyncCopy]:
    """Load rows of that kind into the generation that the transaction has entered."""
    return _SQL.copy(conn, f"copy_{kind}")


async def derive(conn: Connection) -> None:
    """What publishing would have made of the loaded rows."""
    await _SQL.run(conn, "prepare_finish")
    await _SQL.run(conn, "derive_public_attributes", longest=MAX_FILTER_BYTES)
    await _SQL.run(conn, "derive_public_listings")


async def finish_shadow(conn: Connection, shadow: Generation) -> None:
    """Build the keys, and protect the tables."""
    await _SQL.run(conn, "finish_shadow", **shadow.ids)


async def lock_live_progress(conn: Connection, live: Generation) -> int:
    """Pause the live applier until the transaction ends; returns its progress (L)."""
    row = await _SQL.row(conn, "lock_live_progress", **live.ids)
    return 0 if row is None else int(row["position"])


async def lock_pointer(conn: Connection, scope: Scope) -> Generation | None:
    """The generation that serves, which stays so until the transaction ends; None before the first."""
    row = await _SQL.row(conn, "lock_pointer", **scope.ids)
    return None if row is None else Generation(scope, row["generation"], row["history_epoch"])


async def let_serve(conn: Connection, shadow: Generation) -> bool:
    """Point to a shadow, which is live from then on; False where it is none any more."""
    if await _SQL.run(conn, "let_live", **shadow.ids) != 1:
        return False
    await _SQL.run(conn, "put_pointer", **shadow.ids)
    return True


async def digests(conn: Connection, scope: Scope) -> dict[str, StateDigest]:
    """The digests of the generation that the transaction has entered, by type of aggregate."""
    rows = await _SQL.rows(conn, "digest", **scope.ids)
    return {
        row["aggregate_type"]: StateDigest(row["aggregates"], f"{int(row['bits'], 2):064x}")
        for row in rows
    }


async def find_rest(conn: Connection, generation: Generation) -> int | None:
    """The progress that the state is exactly of; None while something above it is applied."""
    row = await _SQL.row(conn, "is_at_rest", **generation.ids)
    return int(row["position"]) if row is not None and row["at_rest"] else None
