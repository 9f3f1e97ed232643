"""The SQL of public queries, each one statement on the tables of the serving generation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_product.publish.model import Attribute
from prw_product.serve.display import spellings
from prw_product.serve.model import Item, Merchant, Offer

_SQL = Statements("prw_product.serve")


async def list_items(
    conn: Connection,
    scope: Scope,
    class_id: str,
    attributes: Mapping[str, str],
    after: str,
    limit: int,
) -> list[Item]:
    """At most ``limit`` released items with ids after ``after``."""
    asked = {"class_id": class_id, "after": after, "limit": limit}
    values = scope.ids | asked | _filters(attributes)
    rows = await _SQL.rows(conn, "list_items", **values)
    return [_item(row) for row in rows]


async def find_item(conn: Connection, scope: Scope, item_id: str) -> Item | None:
    """A released item, or None."""
    values = scope.ids | {"item_id": item_id}
    row = await _SQL.row(conn, "find_item", **values)
    return None if row is None else _item(row)


async def list_merchants(conn: Connection, scope: Scope, after: str, limit: int) -> list[Merchant]:
    """At most ``limit`` merchants with a released offer, with ids after ``after``."""
    values = scope.ids | {"after": after, "limit": limit}
    rows = await _SQL.rows(conn, "list_merchants", **values)
    return [Merchant(**row) for row in rows]


async def count_public(conn: Connection, scope: Scope) -> tuple[int, int]:
    """Released items, and listings that are public under them."""
    row = await _SQL.row(conn, "count_public", **scope.ids)
    return (0, 0) if row is None else (row["items"], row["listings"])


def _filters(attributes: Mapping[str, str]) -> dict[str, Any]:
    wanted = [
        (number, key, value, unit)
        for number, (key, text) in enumerate(sorted(attributes.items()))
        for value, unit in spellings(text)
    ]
    return {
        "filters": len(attributes),
        "numbers": [number for number, _, _, _ in wanted],
        "keys": [key for _, key, _, _ in wanted],
        "values": [value for _, _, value, _ in wanted],
        "units": [unit for _, _, _, unit in wanted],
    }


def _item(row: Mapping[str, Any]) -> Item:
    attributes = tuple(Attribute(**attribute) for attribute in row["attributes"])
    offers = tuple(_offer(offer) for offer in row["offers"])
    return Item(**{**row, "attributes": attributes, "offers": offers})


def _offer(offer: Mapping[str, Any]) -> Offer:
    observed = offer["observed_at"]
    return Offer(
        offer["listing_id"],
        Merchant(offer["merchant_id"], offer["merchant_name"]),
        offer["title"],
        offer["url"],
        offer["price_amount"],
        offer["price_currency"],
        offer["availability"],
        None if observed is None else datetime.fromisoformat(observed).astimezone(UTC),
    )
