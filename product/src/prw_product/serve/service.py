"""The public queries. Each goes through the generation pointer and never reads anything private."""

from __future__ import annotations

from dataclasses import dataclass

from prw.errors import Code, PrwError
from prw_base.paging import make_token, read_token
from prw_base.scope import Scope
from prw_base.server.database import Connection, Database
from prw_product.apply.store import find_hold
from prw_product.publish.store import enter_serving
from prw_product.serve import store
from prw_product.serve.model import (
    Item,
    ItemPage,
    ItemQuery,
    MerchantPage,
    bounded,
    check_query,
    page_size,
    weigh_item,
    weigh_merchant,
)

_MERCHANTS = "merchants"


@dataclass(frozen=True, slots=True)
class PublicCounts:
    """How much is public."""

    items: int
    listings: int


class Catalogue:
    """The released catalogue of one scope.

    A query reads the pointer, and with it enters that generation's tables, in one statement; its
    data comes from one more statement, so that a cutover never mixes two generations.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database = database
        self._scope = scope

    async def list_items(self, query: ItemQuery) -> ItemPage:
        """One page of released items. Raises PrwError VALIDATION_FAILED."""
        check_query(query)
        limit, bound_to = page_size(query.page_size), query.fingerprint()
        after = _after(query.page_token, bound_to)

        async def work(conn: Connection) -> list[Item]:
            if await enter_serving(conn, self._scope) is None:
                return []
            filters = query.attributes or {}
            return await store.list_items(
                conn, self._scope, query.class_id or "", filters, after, limit + 1
            )

        found = await self._database.run(work, self._scope.tenant_id, read_only=True)
        page = bounded(found[:limit], weigh_item)
        token = make_token((page[-1].item_id,), bound_to) if len(found) > len(page) else ""
        return ItemPage(page, token)

    async def get_item(self, item_id: str) -> Item:
        """One released item. Raises PrwError NOT_FOUND, whatever is known of it internally."""

        async def work(conn: Connection) -> Item | None:
            if "\0" in item_id or await enter_serving(conn, self._scope) is None:
                return None
            return await store.find_item(conn, self._scope, item_id)

        found = await self._database.run(work, self._scope.tenant_id, read_only=True)
        if found is None:
            raise PrwError(Code.NOT_FOUND, "no such item is published")
        return found

    async def list_merchants(self, size: int, token: str) -> MerchantPage:
        """One page of merchants that have a released offer. Raises PrwError VALIDATION_FAILED."""
        limit, after = page_size(size), _after(token, _MERCHANTS)

        async def work(conn: Connection) -> MerchantPage:
            if await enter_serving(conn, self._scope) is None:
                return MerchantPage((), "")
            found = await store.list_merchants(conn, self._scope, after, limit + 1)
            page = bounded(found[:limit], weigh_merchant)
            more = len(found) > len(page)
            following = make_token((page[-1].merchant_id,), _MERCHANTS) if more else ""
            return MerchantPage(page, following)

        return await self._database.run(work, self._scope.tenant_id, read_only=True)

    async def find_refusal(self) -> str | None:
        """The code of the change that was refused and holds progress, if one does."""

        async def work(conn: Connection) -> str | None:
            generation = await enter_serving(conn, self._scope)
            held = None if generation is None else await find_hold(conn, generation)
            return None if held is None else held.code

        return await self._database.run(work, self._scope.tenant_id, read_only=True)

    async def count(self) -> PublicCounts:
        """How much is public now."""

        async def work(conn: Connection) -> PublicCounts:
            if await enter_serving(conn, self._scope) is None:
                return PublicCounts(0, 0)
            return PublicCounts(*await store.count_public(conn, self._scope))

        return await self._database.run(work, self._scope.tenant_id, read_only=True)


def _after(token: str, query: str) -> str:
    """The id that the token's page begins after; every id is greater than the empty one."""
    held = read_token(token, query)
    return "" if held is None else held[0]
