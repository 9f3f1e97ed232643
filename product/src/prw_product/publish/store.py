"""The SQL of generations, the pointer and what is public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import IntegrityError
from psycopg.types.json import Jsonb

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_product.publish.model import Generation, Release, is_filterable

_SQL = Statements("prw_product.publish")


async def find_serving(conn: Connection, scope: Scope) -> Generation | None:
    """The generation that serves ``scope``, or None before the first one."""
    row = await _SQL.row(conn, "find_serving", **scope.ids)
    return None if row is None else Generation(scope, row["generation"], row["history_epoch"])


async def enter_serving(conn: Connection, scope: Scope) -> Generation | None:
    """Make the serving generation's tables the ones of this transaction; None if there is none."""
    row = await _SQL.row(conn, "enter_serving", **scope.ids)
    return None if row is None else Generation(scope, row["generation"], row["history_epoch"])


async def enter(conn: Connection, generation: Generation) -> None:
    """Make ``generation``'s tables the ones of this transaction."""
    await _SQL.run(conn, "enter_generation", generation=generation.number)


async def put_first(conn: Connection, generation: Generation) -> bool:
    """Make ``generation`` and point to it; False where the scope has a pointer already."""
    await _SQL.run(conn, "create_generation", **generation.ids)
    await _SQL.run(conn, "put_generation", **generation.ids)
    return await _SQL.row(conn, "put_serving", **generation.ids) is not None


async def put_public_items(conn: Connection, scope: Scope, releases: Sequence[Release]) -> None:
    """Set the release pointer of each item, and the values by which it may be found.

    Raises psycopg.IntegrityError for a second release of an item, or one that changed its item.
    """
    values = scope.ids | _columns(releases)
    written = await _SQL.run(conn, "put_public_items", **values)
    if written != len(releases):
        raise IntegrityError("a release has changed its item")
    items = {**scope.ids, "items": [release.item_id for release in releases]}
    await _SQL.run(conn, "delete_public_attributes", **items)
    await _SQL.run(conn, "put_public_attributes", **scope.ids, **_values(releases))


def _columns(releases: Sequence[Release]) -> dict[str, Any]:
    return {
        "items": [release.item_id for release in releases],
        "releases": [release.release_id for release in releases],
        "classes": [release.class_id for release in releases],
        "titles": [release.title for release in releases],
        "attributes": [Jsonb([a.as_json() for a in release.attributes]) for release in releases],
        "item_revisions": [release.item_revision for release in releases],
        "publications": [release.publication_revision for release in releases],
        "positions": [release.position for release in releases],
    }


def _values(releases: Sequence[Release]) -> dict[str, Any]:
    pairs = [(r.item_id, a) for r in releases for a in r.attributes if is_filterable(a)]
    return {
        "items": [item_id for item_id, _ in pairs],
        "keys": [attribute.key for _, attribute in pairs],
        "values": [attribute.value for _, attribute in pairs],
        "units": [attribute.unit for _, attribute in pairs],
    }


async def replace_released_listings(
    conn: Connection, scope: Scope, releases: Sequence[Release]
) -> set[str]:
    """Name the listings of the releases; returns every listing whose owner may have changed."""
    items = {**scope.ids, "items": [release.item_id for release in releases]}
    former = await _SQL.rows(conn, "delete_released_listings", **items)
    pairs = [(release, listing) for release in releases for listing in release.listings]
    named = [listing.listing_id for _, listing in pairs]
    values = {
        "items": [release.item_id for release, _ in pairs],
        "listings": named,
        "revisions": [listing.mapping_revision for _, listing in pairs],
        "positions": [release.position for release, _ in pairs],
    }
    await _SQL.run(conn, "put_released_listings", **scope.ids, **values)
    return {str(row["listing_id"]) for row in former} | set(named)


async def raise_released_mappings(
    conn: Connection, scope: Scope, releases: Sequence[Release]
) -> set[str]:
    """Note the mapping revisions that these releases name; returns their listings."""
    named = [listing for release in releases for listing in release.listings]
    values = {
        "listings": [listing.listing_id for listing in named],
        "revisions": [listing.mapping_revision for listing in named],
    }
    await _SQL.run(conn, "raise_released_mappings", **scope.ids, **values)
    return {listing.listing_id for listing in named}


async def assign_listings(conn: Connection, scope: Scope, listings: set[str]) -> None:
    """Give each listing its one public owner anew."""
    values = {**scope.ids, "listings": sorted(listings)}
    await _SQL.run(conn, "delete_public_listings", **values)
    await _SQL.run(conn, "assign_public_listings", **values)
