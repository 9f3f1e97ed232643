"""Any legal history in any delivery: at each point the public sees what an oracle says (T4, T6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from prw.changes.v1 import change_pb2 as pb
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.apply.service import Applied, Applier, open_live
from prw_product.follow.decode import decode
from prw_product.serve.model import Item, ItemQuery
from prw_product.serve.service import Catalogue
from tests.product import looking
from tests.product.events import EPOCH, TENANT, deliveries
from tests.product.histories import ACTS, Act, Oracle, Shown, write

_EXAMPLES = 30


class _World:
    """One database; each history gets a catalogue of its own."""

    def __init__(self, database: Database, dsn: str) -> None:
        self.database = database
        self.dsn = dsn
        self.met: Counter[str] = Counter()
        self._made = 0

    def scope(self) -> Scope:
        """A catalogue that nobody has seen."""
        self._made += 1
        return Scope(TENANT, f"cat_{self._made}")

    async def applier(self, scope: Scope) -> Applier:
        """An applier as after a start."""
        live = await open_live(self.database, scope, EPOCH)
        return Applier(self.database, decode, live.generation)

    async def check(self, acts: list[Act], chance: Random) -> None:
        """Deliver the history anyhow, looking at each point, and compare it with in-order."""
        scope, straight = self.scope(), self.scope()
        history = write(acts, scope.catalog_id)
        oracle, applier = Oracle(), await self.applier(scope)
        for sent in _cut(history, chance):
            restarted = chance.random() < 0.2
            applier = await self.applier(scope) if restarted else applier
            batch = [*history[: chance.randint(0, 4) * restarted], *sent]
            oracle.deliver(batch)
            self._meet(oracle, await applier.apply(deliveries(batch)))
            await self._look(scope, oracle)
        assert (oracle.progress, oracle.parked) == (len(history), [])
        in_order = await self.applier(straight)
        await in_order.apply(deliveries(write(acts, straight.catalog_id)))
        assert self._projected(scope) == self._projected(straight)

    async def _look(self, scope: Scope, oracle: Oracle) -> None:
        shown = oracle.shown()
        catalogue = Catalogue(self.database, scope)
        page = await catalogue.list_items(ItemQuery())
        assert _shown(page.items) == shown
        sellers = await catalogue.list_merchants(0, "")
        assert len(_listed(page.items)) == len(set(_listed(page.items)))
        names = {offer[0] for item in shown.values() for offer in _offers(item)} - {""}
        assert {merchant.name for merchant in sellers.merchants} == names
        self.met["offers"] += len(_listed(page.items))
        self.met["items without offers"] += sum(1 for item in page.items if not item.offers)

    def _meet(self, oracle: Oracle, applied: Applied) -> None:
        """I3 and T6 at each point; and what this run has really been through."""
        assert applied.progress == oracle.progress
        for name in ("parked", "released", "stale", "duplicates"):
            self.met[name] += getattr(applied, name)
        self.met["gaps"] += bool(oracle.parked) or oracle.progress < max(oracle.delivered)

    def _projected(self, scope: Scope) -> dict[str, list[tuple[Any, ...]]]:
        found = looking.projection(self.dsn)
        return {
            table: [row[2:] for row in rows if row[1] == scope.catalog_id]
            for table, rows in found.items()
        }


def _cut(history: list[pb.Change], chance: Random) -> list[list[pb.Change]]:
    """Everything once, some of it twice, in any order and in batches of any size."""
    sent = [*history, *chance.choices(history, k=len(history) // 3)]
    # Now and then nearly in order, as a stream with a hole or two is.
    reach = chance.choice((2, 6, len(sent)))
    order = sorted(range(len(sent)), key=lambda at: at % len(history) + chance.random() * reach)
    sent = [sent[at] for at in order]
    batches = []
    while sent:
        size = chance.randint(1, 12)
        batches.append(sent[:size])
        sent = sent[size:]
    return batches


def _shown(items: tuple[Item, ...]) -> Shown:
    return {
        item.item_id: (
            item.title,
            item.published_revision,
            item.publication_revision,
            tuple(
                sorted(
                    (o.merchant.name, o.listing_id, o.title, o.price_amount or "")
                    for o in item.offers
                )
            ),
        )
        for item in items
    }


def _offers(item: tuple[object, ...]) -> tuple[tuple[str, ...], ...]:
    offers = item[3]
    assert isinstance(offers, tuple)
    return offers


def _listed(items: tuple[Item, ...]) -> list[str]:
    return [offer.listing_id for item in items for offer in item.offers]


def test_any_delivery_shows_what_its_changes_say_and_ends_as_in_order(
    product_database: dict[str, str],
) -> None:
    """I3, I8 and T6 at every batch: what is shown is a function of what was delivered, never a mixture."""
    with asyncio.Runner() as runner:
        opened = Database.open(product_database["product_app"], max_size=2)
        world = _World(runner.run(opened), product_database["superuser"])

        @settings(
            max_examples=_EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
        )
        @given(ACTS, st.integers(0, 2**32))
        def check(acts: list[Act], seed: int) -> None:
            runner.run(world.check(acts, Random(seed)))

        try:
            check()
        finally:
            runner.run(world.database.close())
    wanted = ("parked", "released", "stale", "duplicates", "gaps", "offers", "items without offers")
    assert {name for name in wanted if world.met[name] < _EXAMPLES} == set(), world.met
