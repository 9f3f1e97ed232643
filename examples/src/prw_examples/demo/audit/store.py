"""The audit's SQL over both databases, as a superuser, whom row-level security does not hold back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Identifier

from prw_base.server.sql import load
from prw_examples.demo.audit.model import Item, Listing, Said

Connection = psycopg.AsyncConnection[DictRow]
Fact = Mapping[str, Any]

_RESOLVER = load("prw_examples.demo.audit", "resolver.sql")
_PRODUCT = load("prw_examples.demo.audit", "product.sql")


@dataclass(frozen=True, slots=True)
class Scope:
    """The catalogue that is looked at."""

    tenant_id: str
    catalog_id: str


@dataclass(frozen=True, slots=True)
class ResolverStanding:
    """What the resolver has done for a catalogue and has still to do; `position` is the stream's cursor."""

    captures: int
    unresolved: int
    jobs: int
    dead_letters: tuple[str, ...]
    wakes: int
    releases_due: int
    submitted: int
    accepted: int
    in_review: int
    history_epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class ProductStanding:
    """How far the product has followed; 0 in `generation` before it has begun."""

    generation: int
    progress: int
    parked: int
    dead_letters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Books:
    """A connection to each database, and the catalogue."""

    resolver: Connection
    product: Connection
    scope: Scope

    async def resolver_standing(self) -> ResolverStanding:
        """What the resolver has still to do."""
        row = await self._resolver_row("standing")
        return ResolverStanding(**row | {"dead_letters": tuple(row["dead_letters"])})

    async def product_standing(self) -> ProductStanding:
        """How far the product has followed."""
        row = (await self._product("standing"))[0]
        return ProductStanding(**row | {"dead_letters": tuple(row["dead_letters"])})

    async def gaps(self, resolver: ResolverStanding, product: ProductStanding) -> int:
        """Positions up to the cursor that the outbox lacks, and those that the product's inbox lacks."""
        stream = {"position": resolver.position, "history_epoch": resolver.history_epoch}
        outbox = await self._resolver_row("outbox_gaps", **stream)
        inbox = (await self._product("inbox_gaps", **stream, generation=product.generation))[0]
        return int(outbox["gaps"]) + int(inbox["gaps"])

    async def duplicates(self) -> int:
        """Listings that are mapped twice, and captures that came in twice."""
        return int((await self._resolver_row("duplicates"))["duplicates"])

    async def public_items(self, product: ProductStanding) -> int:
        """How many items are public; 0 before there is a projection."""
        rows = await self._projection("public_items", product)
        return int(rows[0]["items"]) if rows else 0

    async def listings(self, product: ProductStanding) -> tuple[Listing, ...]:
        """The newest reading of every listing, with what both databases made of it."""
        shown = {
            row["listing_id"]: row["item_id"]
            for row in await self._projection("public_listings", product)
        }
        return tuple(_listing(row, shown) for row in await self._resolver("listings"))

    async def items(self) -> dict[str, Item]:
        """The accepted items by id."""
        return {row["item_id"]: _item(row) for row in await self._resolver("items")}

    async def facts(self) -> Sequence[Fact]:
        """Each revision of each accepted fact, with its evidence."""
        return await self._resolver("facts")

    async def documents(self) -> dict[str, Mapping[str, Any]]:
        """The captures' documents by capture."""
        return {row["capture_id"]: row["document"] for row in await self._resolver("captures")}

    async def _resolver(self, name: str, **values: object) -> list[DictRow]:
        return await _rows(self.resolver, SQL(_RESOLVER[name]), self._values(values))

    async def _resolver_row(self, name: str, **values: object) -> DictRow:
        return (await self._resolver(name, **values))[0]

    async def _product(self, name: str, **values: object) -> list[DictRow]:
        return await _rows(self.product, SQL(_PRODUCT[name]), self._values(values))

    async def _projection(self, name: str, product: ProductStanding) -> list[DictRow]:
        if product.generation == 0:
            return []
        projection = Identifier(f"projection_{product.generation}")
        query = SQL(_PRODUCT[name]).format(projection=projection)
        return await _rows(self.product, query, self._values({}))

    def _values(self, more: Mapping[str, object]) -> dict[str, object]:
        return {"tenant": self.scope.tenant_id, "catalog": self.scope.catalog_id, **more}


@asynccontextmanager
async def open_books(resolver_dsn: str, product_dsn: str, scope: Scope) -> AsyncIterator[Books]:
    """Both databases, for reading. The DSNs are an administrator's."""
    async with _connected(resolver_dsn) as resolver, _connected(product_dsn) as product:
        yield Books(resolver, product, scope)


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[Connection]:
    connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, row_factory=dict_row)
    async with connection:
        await connection.set_read_only(True)
        yield connection


async def _rows(connection: Connection, query: Any, values: Mapping[str, object]) -> list[DictRow]:
    cursor = await connection.execute(query, values)
    return await cursor.fetchall()


def _listing(row: DictRow, shown: Mapping[str, str]) -> Listing:
    return Listing(
        source_id=row["source_id"],
        listing_key=row["listing_key"],
        page=row["page"],
        sku=tuple(row["sku"]),
        seller=row["seller"],
        values={name: Said(*held) for name, held in row["said"].items()},
        ambiguous=frozenset(row["ambiguous"]),
        items=frozenset(row["items"]),
        deciders=frozenset(row["deciders"]),
        public=frozenset(shown[one] for one in row["listing_ids"] if one in shown),
        has_open_case=row["has_open_case"],
    )


def _item(row: DictRow) -> Item:
    attributes = {name: (held[0], held[1]) for name, held in row["attributes"].items()}
    return Item(row["item_id"], row["status"], row["trusted"], attributes)
