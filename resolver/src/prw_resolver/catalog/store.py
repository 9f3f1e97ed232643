"""The SQL of the accepted state: reads only. It is written by `resolver.stream_commit` alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
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
from prw_resolver.vocabulary.model import IdentityKey, Quote
from prw_resolver.vocabulary.stored import quotes_from_json

_SQL = Statements("prw_resolver.catalog")


async def owners(conn: Connection, scope: Scope, keys: Iterable[IdentityKey]) -> dict[str, str]:
    """The owning item of each owned key, by identity hash. The keys are of one class and generation."""
    wanted = tuple(keys)
    if not wanted:
        return {}
    rows = await _SQL.rows(
        conn,
        "owners",
        **scope.ids,
        class_id=wanted[0].class_id,
        generation=wanted[0].generation,
        hashes=[key.identity_hash for key in wanted],
    )
    return {row["identity_hash"]: row["item_id"] for row in rows}


async def items(conn: Connection, scope: Scope, item_ids: Iterable[str]) -> dict[str, Item]:
    """Items by id; an unknown id is not in the answer."""
    rows = await _SQL.rows(conn, "items", **scope.ids, item_ids=sorted(set(item_ids)))
    return {row["item_id"]: _item(row) for row in rows}


async def mapping(conn: Connection, scope: Scope, listing_id: str) -> ListingMapping | None:
    """The listing's mapping, or None."""
    rows = await _SQL.rows(conn, "mapping", **scope.ids, listing_id=listing_id)
    return _mapping(rows[0]) if rows else None


async def mappings_of_target(
    conn: Connection, scope: Scope, source_id: str, target: str
) -> tuple[ListingMapping, ...]:
    """The active mappings of the listings on one planned target's page."""
    rows = await _SQL.rows(
        conn, "mappings_of_target", **scope.ids, source_id=source_id, target=target
    )
    return tuple(_mapping(row) for row in rows)


async def mapping_evidence(conn: Connection, scope: Scope, listing_id: str) -> tuple[Quote, ...]:
    """The evidence of a listing's mapping; empty where there is none."""
    rows = await _SQL.rows(conn, "mapping_evidence", **scope.ids, listing_id=listing_id)
    return quotes_from_json(rows[0]["evidence"]) if rows else ()


async def mappings_of_item(
    conn: Connection, scope: Scope, item_id: str
) -> tuple[ListingMapping, ...]:
    """The item's active mappings; those of trusted sources first, then by listing id."""
    return tuple(
        _mapping(row)
        for row in await _SQL.rows(conn, "mappings_of_item", **scope.ids, item_id=item_id)
    )


async def merchant(conn: Connection, scope: Scope, merchant_id: str) -> Merchant | None:
    """The merchant, or None."""
    rows = await _SQL.rows(conn, "merchant", **scope.ids, merchant_id=merchant_id)
    return Merchant(**rows[0]) if rows else None


async def observation(conn: Connection, scope: Scope, listing_id: str) -> Observation | None:
    """The listing's newest observation, or None."""
    rows = await _SQL.rows(conn, "observation", **scope.ids, listing_id=listing_id)
    if not rows:
        return None
    amount = rows[0].pop("amount")
    return Observation(amount=None if amount is None else plain_amount(amount), **rows[0])


async def release(conn: Connection, scope: Scope, item_id: str) -> Release | None:
    """What of the item is public, or None."""
    rows = await _SQL.rows(conn, "release", **scope.ids, item_id=item_id)
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
    conn: Connection, scope: Scope, item_id: str
) -> tuple[tuple[Quote, ...], str]:
    """The evidence of an item's newest revision, and its decision."""
    row = (await _SQL.rows(conn, "item_evidence", **scope.ids, item_id=item_id))[0]
    return quotes_from_json(row["evidence"]), row["decision_id"]


async def releases_due(conn: Connection, scope: Scope, limit: int) -> list[tuple[str, int]]:
    """Items whose public face may have to change, each with its touch."""
    rows = await _SQL.rows(conn, "releases_due", **scope.ids, limit=limit)
    return [(row["item_id"], row["touched"]) for row in rows]


async def release_not_due(conn: Connection, scope: Scope, item_id: str, touched: int) -> None:
    """Note that nothing public changes with that touch."""
    await _SQL.rows(conn, "release_not_due", **scope.ids, item_id=item_id, touched=touched)


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
