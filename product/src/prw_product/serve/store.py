"""The SQL of public queries, each one statement on the tables of the serving generation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from prw_base.server.database import Connection
from prw_base.server.sql import load
from prw_product.publish.model import Attribute, Scope
from prw_product.publish.store import keys
from prw_product.serve.display import spellings
from prw_product.serve.model import Item, Merchant, Offer

_SQL = load("prw_product.serve", "store.sql")


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
    values = keys(scope) | asked | _filters(attributes)
    rows = await (await conn.execute(_SQL["list_items"], values)).fetchall()
    return [_item(row) for row in rows]


async def find_item(conn: Connection, scope: Scope, item_id: str) -> Item | None:
    """A released item, or None."""
    values = keys(scope) | {"item_id": item_id}
    row = await (await conn.execute(_SQL["find_item"], values)).fetchone()
    return None if row is None else _item(row)


async def list_merchants(conn: Connection, scope: Scope, after: str, limit: int) -> list[Merchant]:
    """At most ``limit`` merchants with a released offer, with ids after ``after``."""
    values = keys(scope) | {"after": after, "limit": limit}
    rows = await (await conn.execute(_SQL["list_merchants"], values)).fetchall()
    return [Merchant(*row) for row in rows]


async def count_public(conn: Connection, scope: Scope) -> tuple[int, int]:
    """Released items, and listings that are public under them."""
    row = await (await conn.execute(_SQL["count_public"], keys(scope))).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


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


def _item(row: tuple[Any, ...]) -> Item:
    item_id, class_id, title, attributes, published, publication, offers = row
    return Item(
        item_id,
        class_id,
        title,
        tuple(Attribute(**attribute) for attribute in attributes),
        published,
        publication,
        tuple(_offer(offer) for offer in offers),
    )


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
