"""Publishing: what applying a release changes, and the first generation of a catalogue."""

from __future__ import annotations

from collections.abc import Sequence

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_product.publish import store
from prw_product.publish.model import Generation, Release

FIRST_GENERATION = 1


async def publish(
    conn: Connection, scope: Scope, releases: Sequence[Release], overtaken: Sequence[Release]
) -> None:
    """Make ``releases`` public: release pointers and listings' owners, in the caller's transaction.

    The transaction has entered its generation; at most one release an item, each the newest. The
    mapping states that they name are stored, or their listings stay private (if_product_query).
    Of ``overtaken`` releases only this counts: a listing that one of them named never goes back to
    an older mapping, whatever another item's release still says.
    """
    if not releases and not overtaken:
        return
    touched = await store.raise_released_mappings(conn, scope, [*releases, *overtaken])
    if releases:
        await store.put_public_items(conn, scope, releases)
        touched |= await store.replace_released_listings(conn, scope, releases)
    await store.assign_listings(conn, scope, touched)


async def open_serving(
    conn: Connection, scope: Scope, history_epoch: int
) -> tuple[Generation, bool]:
    """The generation that serves ``scope``, and whether it was made just now.

    A catalogue that nothing serves yet begins with generation 1 of ``history_epoch``. One that is
    served keeps its generation, whatever the epoch: a new history needs a rebuild, never a reset.
    """
    found = await store.find_serving(conn, scope)
    if found is not None:
        return found, False
    made = await store.put_first(conn, Generation(scope, FIRST_GENERATION, history_epoch))
    found = await store.find_serving(conn, scope)
    if found is None:
        raise AssertionError("a pointer that was just made is not there")
    return found, made
