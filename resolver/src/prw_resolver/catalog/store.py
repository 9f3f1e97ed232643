"""The SQL of the accepted state: reads only. It is written by `resolver.stream_commit` alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from prw_base.server.sql import load
from prw_resolver.catalog.model import (
    Attribute,
    HeldKey,
    Item,
    ItemStatus,
    ListingMapping,
    MappingStatus,
    Merchant,
    Observation,
    Release,
    ReleasedListing,
)
from prw_resolver.stream.encode import quote_from_json
from prw_resolver.vocabulary.model import IdentityKey, Quote

SQL = load("prw_resolver.catalog", "store.sql")


@dataclass(frozen=True, slots=True)
class Scope:
    """The catalogue that a read is about."""

    tenant_id: str
    catalog_id: str


async def _rows(
    conn: AsyncConnection[Any], name: str, scope: Scope, **parameters: object
) -> list[dict[str, Any]]:
    parameters |= {"tenant_id": scope.tenant_id, "catalog_id": scope.catalog_id}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL[name], parameters)
        return await cursor.fetchall() if cursor.description else []


async def owners(
    conn: AsyncConnection[Any], scope: Scope, keys: Iterable[IdentityKey]
) -> dict[str, str]:
    """The owning item of each owned key, by identity hash. The keys are of one class and generation."""
    wanted = tuple(keys)
    if not wanted:
        return {}
    rows = await _rows(
        conn,
        "owners",
        scope,
        class_id=wanted[0].class_id,
        generation=wanted[0].generation,
        hashes=[key.identity_hash for key in wanted],
    )
    return {row["identity_hash"]: row["item_id"] for row in rows}


async def items(
    conn: AsyncConnection[Any], scope: Scope, item_ids: Iterable[str]
) -> dict[str, Item]:
    """Items by id; an unknown id is not in the answer."""
    rows = await _rows(conn, "items", scope, item_ids=sorted(set(item_ids)))
    return {row["item_id"]: _item(row) for row in rows}


async def mapping(
    conn: AsyncConnection[Any], scope: Scope, listing_id: str
) -> ListingMapping | None:
    """The listing's mapping, or None."""
    rows = await _rows(conn, "mapping", scope, listing_id=listing_id)
    return _mapping(rows[0]) if rows else None


async def mappings_of_target(
    conn: AsyncConnection[Any], scope: Scope, source_id: str, target: str
) -> tuple[ListingMapping, ...]:
    """The active mappings of the listings on one planned target's page."""
    rows = await _rows(conn, "mappings_of_target", scope, source_id=source_id, target=target)
    return tuple(_mapping(row) for row in rows)


async def mapping_evidence(
    conn: AsyncConnection[Any], scope: Scope, listing_id: str
) -> tuple[Quote, ...]:
    """The evidence of a listing's mapping; empty where there is none."""
    rows = await _rows(conn, "mapping_evidence", scope, listing_id=listing_id)
    return tuple(quote_from_json(quote) for row in rows for quote in row["evidence"])


async def mappings_of_item(
    conn: AsyncConnection[Any], scope: Scope, item_id: str
) -> tuple[ListingMapping, ...]:
    """The item's active mappings; those of trusted sources first, then by listing id."""
    return tuple(
        _mapping(row) for row in await _rows(conn, "mappings_of_item", scope, item_id=item_id)
    )


async def merchant(conn: AsyncConnection[Any], scope: Scope, merchant_id: str) -> Merchant | None:
    """The merchant, or None."""
    rows = await _rows(conn, "merchant", scope, merchant_id=merchant_id)
    return Merchant(**rows[0]) if rows else None


async def observation(
    conn: AsyncConnection[Any], scope: Scope, listing_id: str
) -> Observation | None:
    """The listing's newest observation, or None."""
    rows = await _rows(conn, "observation", scope, listing_id=listing_id)
    if not rows:
        return None
    amount = rows[0].pop("amount")
    return Observation(amount=None if amount is None else plain_amount(amount), **rows[0])


async def release(conn: AsyncConnection[Any], scope: Scope, item_id: str) -> Release | None:
    """What of the item is public, or None."""
    rows = await _rows(conn, "release", scope, item_id=item_id)
    if not rows:
        return None
    content = rows[0].pop("content")
    return Release(
        **rows[0],
        class_id=content["class_id"],
        title=content["title"],
        public_fields=tuple(Attribute(**field) for field in content["public_fields"]),
        listings=tuple(ReleasedListing(**listing) for listing in content["listings"]),
    )


async def item_evidence(
    conn: AsyncConnection[Any], scope: Scope, item_id: str
) -> tuple[tuple[Quote, ...], str]:
    """The evidence of an item's newest revision, and its decision."""
    row = (await _rows(conn, "item_evidence", scope, item_id=item_id))[0]
    return tuple(quote_from_json(quote) for quote in row["evidence"]), row["decision_id"]


async def releases_due(
    conn: AsyncConnection[Any], scope: Scope, limit: int
) -> list[tuple[str, int]]:
    """Items whose public face may have to change, each with its touch."""
    rows = await _rows(conn, "releases_due", scope, limit=limit)
    return [(row["item_id"], row["touched"]) for row in rows]


async def release_not_due(
    conn: AsyncConnection[Any], scope: Scope, item_id: str, touched: int
) -> None:
    """Note that nothing public changes with that touch."""
    await _rows(conn, "release_not_due", scope, item_id=item_id, touched=touched)


def plain_amount(amount: str) -> str:
    """A decimal amount with at least two and at most four places, as ``129.90``."""
    exact = Decimal(amount).normalize()
    places = max(2, -int(exact.as_tuple().exponent))
    return f"{exact:.{places}f}"


def _item(row: Mapping[str, Any]) -> Item:
    return Item(
        item_id=row["item_id"],
        class_id=row["class_id"],
        status=ItemStatus(row["status"]),
        revision=row["revision"],
        title=row["title"],
        successors=tuple(row["successors"]),
        attributes=tuple(Attribute(**attribute) for attribute in row["attributes"]),
        keys=tuple(HeldKey(**key) for key in row["keys"]),
    )


def _mapping(row: Mapping[str, Any]) -> ListingMapping:
    return ListingMapping(**{**row, "status": MappingStatus(row["status"])})
