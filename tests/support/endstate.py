"""What a walk has come to, in words that do not differ between two runs: no ids, no times, no revisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
from psycopg.rows import dict_row

from tests.support.walk import Walk

ItemName = tuple[str, ...]
"""An item by the hashes of all its active keys, sorted."""

Listing = tuple[str, str]
"""A listing by source and listing key."""

# The database is the walk's own, and it has one catalogue.
_KEYS = "select item_id, identity_hash from resolver.catalog_item_key where status = 'active'"
_ITEMS = "select item_id, class_id, status from resolver.catalog_item"
_ATTRIBUTES = "select item_id, attribute_key, value, unit from resolver.catalog_item_attribute"
_MAPPINGS = (
    "select m.source_id, m.listing_key, m.item_id, m.status, m.url, m.title, n.name as merchant"
    " from resolver.listing_mapping m"
    " join resolver.merchant n using (tenant_id, catalog_id, merchant_id)"
)
_CASES = (
    "select source_id, listing_key, kind, reason, candidates from resolver.review_case"
    " where status in ('awaiting_human', 'deferred')"
)


@dataclass(frozen=True, slots=True)
class EndState:
    """Accepted items, where the listings are, what is asked of persons, and what the public sees."""

    items: Mapping[ItemName, Mapping[str, Any]]
    mappings: Mapping[Listing, Mapping[str, Any]]
    cases: Mapping[Listing, Mapping[str, Any]]
    public: Mapping[ItemName, Mapping[str, Any]]


async def end_state(walk: Walk) -> EndState:
    """The state of a walk that is at rest."""
    with psycopg.connect(walk.resolver_dsns["superuser"], row_factory=dict_row) as conn:
        names = _names(_rows(conn, _KEYS))
        items = {names[one["item_id"]]: _item(one) for one in _rows(conn, _ITEMS)}
        for held in _rows(conn, _ATTRIBUTES):
            attributes = items[names[held["item_id"]]]["attributes"]
            attributes[held["attribute_key"]] = (held["value"], held["unit"])
        mappings = _by_listing(_rows(conn, _MAPPINGS), lambda one: _mapping(one, names))
        cases = _by_listing(_rows(conn, _CASES), lambda one: _case(one, names))
    return EndState(items, mappings, cases, await public_pages(walk, names))


def _rows(conn: psycopg.Connection[dict[str, Any]], query: str) -> list[dict[str, Any]]:
    return conn.execute(query.encode()).fetchall()


def _names(keys: Iterable[Mapping[str, str]]) -> dict[str, ItemName]:
    hashes: dict[str, list[str]] = {}
    for key in keys:
        hashes.setdefault(key["item_id"], []).append(key["identity_hash"])
    return {item_id: tuple(sorted(held)) for item_id, held in hashes.items()}


def _item(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"class": row["class_id"], "status": row["status"], "attributes": {}}


def _mapping(row: Mapping[str, Any], names: Mapping[str, ItemName]) -> dict[str, Any]:
    shown = ("status", "url", "title", "merchant")
    return {"item": names[row["item_id"]]} | {name: row[name] for name in shown}


def _case(row: Mapping[str, Any], names: Mapping[str, ItemName]) -> dict[str, Any]:
    candidates = sorted(names[one["item_id"]] for one in row["candidates"])
    return {"kind": row["kind"], "reason": row["reason"], "candidates": candidates}


def _by_listing(
    rows: Iterable[Mapping[str, Any]], describe: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[Listing, dict[str, Any]]:
    found: dict[Listing, dict[str, Any]] = {}
    for row in rows:
        listing = (row["source_id"], row["listing_key"])
        assert listing not in found, f"{listing} is there twice"
        found[listing] = describe(row)
    return found


async def public_pages(walk: Walk, names: Mapping[str, ItemName]) -> dict[ItemName, dict[str, Any]]:
    """Every page of the public catalogue, asked for one by one over HTTP."""
    async with httpx.AsyncClient(base_url=walk.product.told["url"], trust_env=False) as client:
        listed = await _listed(client)
        pages = {
            one["item_id"]: (await client.get(f"/v1/items/{one['item_id']}")) for one in listed
        }
    for one in listed:
        assert pages[one["item_id"]].json() == one, "the list and the page of an item differ"
    return {names[item_id]: _page(page.json()) for item_id, page in pages.items()}


async def _listed(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = await client.get("/v1/items", params={"page_size": 10, "page_token": token})
        page = answer.raise_for_status().json()
        items += page["items"]
        token = page["next_page_token"]
        if not token:
            return items


def _page(page: Mapping[str, Any]) -> dict[str, Any]:
    moving = {"item_id", "published_revision", "publication_revision"}
    offers = [
        {name: value for name, value in offer.items() if name != "observed_at"}
        for offer in sorted(page["offers"], key=lambda offer: str(offer["listing_id"]))
    ]
    return {name: value for name, value in page.items() if name not in moving} | {"offers": offers}
