"""The SQL of generations, the pointer and what is public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import IntegrityError
from psycopg.types.json import Jsonb

from prw_base.server.database import Connection
from prw_base.server.sql import load
from prw_product.publish.model import Generation, Release, Scope, is_filterable

_SQL = load("prw_product.publish", "store.sql")


def keys(scope: Scope) -> dict[str, Any]:
    """The parameters that every statement of a scope has."""
    return {"tenant_id": scope.tenant_id, "catalog_id": scope.catalog_id}


async def find_serving(conn: Connection, scope: Scope) -> Generation | None:
    """The generation that serves ``scope``, or None before the first one."""
    row = await (await conn.execute(_SQL["find_serving"], keys(scope))).fetchone()
    return None if row is None else Generation(scope, row[0], row[1])


async def enter_serving(conn: Connection, scope: Scope) -> Generation | None:
    """Make the serving generation's tables the ones of this transaction; None if there is none."""
    row = await (await conn.execute(_SQL["enter_serving"], keys(scope))).fetchone()
    return None if row is None else Generation(scope, row[0], row[1])


async def enter(conn: Connection, generation: Generation) -> None:
    """Make ``generation``'s tables the ones of this transaction."""
    await conn.execute(_SQL["enter_generation"], {"generation": generation.number})


async def put_first(conn: Connection, generation: Generation) -> bool:
    """Make ``generation`` and point to it; False where the scope has a pointer already."""
    values = {
        **keys(generation.scope),
        "generation": generation.number,
        "history_epoch": generation.history_epoch,
    }
    await conn.execute(_SQL["create_generation"], values)
    await conn.execute(_SQL["put_generation"], values)
    return await (await conn.execute(_SQL["put_serving"], values)).fetchone() is not None


async def put_public_items(conn: Connection, scope: Scope, releases: Sequence[Release]) -> None:
    """Set the release pointer of each item, and the values by which it may be found.

    Raises psycopg.IntegrityError for a second release of an item, or one that changed its item.
    """
    values = keys(scope) | _columns(releases)
    written = (await conn.execute(_SQL["put_public_items"], values)).rowcount
    if written != len(releases):
        raise IntegrityError("a release has changed its item")
    items = {**keys(scope), "items": [release.item_id for release in releases]}
    await conn.execute(_SQL["delete_public_attributes"], items)
    await conn.execute(_SQL["put_public_attributes"], keys(scope) | _values(releases))


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
    items = {**keys(scope), "items": [release.item_id for release in releases]}
    former = await (await conn.execute(_SQL["delete_released_listings"], items)).fetchall()
    pairs = [(release, listing) for release in releases for listing in release.listings]
    named = [listing.listing_id for _, listing in pairs]
    values = {
        "items": [release.item_id for release, _ in pairs],
        "listings": named,
        "revisions": [listing.mapping_revision for _, listing in pairs],
        "positions": [release.position for release, _ in pairs],
    }
    await conn.execute(_SQL["put_released_listings"], keys(scope) | values)
    return {str(row[0]) for row in former} | set(named)


async def assign_listings(conn: Connection, scope: Scope, listings: set[str]) -> None:
    """Give each listing its one public owner anew."""
    values = {**keys(scope), "listings": sorted(listings)}
    await conn.execute(_SQL["delete_public_listings"], values)
    await conn.execute(_SQL["assign_public_listings"], values)
