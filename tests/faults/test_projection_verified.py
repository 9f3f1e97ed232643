"""A projection is held against what was accepted, by digests that both sides compute in their own tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code, PrwError
from prw_product.doctor.verify import Verified, verify
from prw_product.publish.model import Generation
from prw_product.rebuild.service import Rebuilder
from tests.faults.rebuilding import NAMES, Rebuilding, rebuilding
from tests.resolver.catalogue import SCOPE

DAMAGES = {
    "catalog_item": "update projection_1.item_revision set title = 'other'",
    "listing_mapping": "update projection_1.mapping_revision set url = 'https://other.example'",
    "merchant": "update projection_1.merchant set name = 'Other'",
    "inventory_observation": "update projection_1.inventory set price_amount = price_amount + 0.01",
    "release": "delete from projection_1.released_listing where ctid = "
    "(select min(ctid) from projection_1.released_listing)",
}
"""Of each type of aggregate a damage of its projected content, though every revision is right."""


@pytest.fixture
async def world(
    resolver_database: dict[str, str], product_database: dict[str, str], tmp_path: Path
) -> AsyncIterator[Rebuilding]:
    """A resolver with a history, and a product that has followed it."""
    async with rebuilding(resolver_database, product_database, tmp_path) as made:
        await made.follow_to_end()
        yield made


async def verified(world: Rebuilding) -> Verified:
    """What verifying finds."""
    async with world.connect()() as client:
        return await verify(world.database, SCOPE, client)


def damage(world: Rebuilding, statement: str) -> None:
    """Change the projection past what its program may do."""
    with psycopg.connect(world.dsn) as conn:
        conn.execute(statement.encode())


async def test_a_projection_that_followed_is_what_was_accepted(world: Rebuilding) -> None:
    """Of every type of aggregate, also while the stream is further already, and rebuilt."""
    await world.observe("12.00", *NAMES)
    found = await verified(world)
    assert [one.type for one in found.types] == sorted(DAMAGES)
    assert all(one.same for one in found.types)
    assert found.position < world.cursor
    await world.rebuilder().run()
    found = await verified(world)
    assert all(one.same for one in found.types)
    assert found.position == world.cursor


@pytest.mark.parametrize("kind", DAMAGES)
async def test_a_damaged_row_is_found_by_its_type(world: Rebuilding, kind: str) -> None:
    """Its content counts, not its revision alone. Fails where that content is left out of the digest."""
    damage(world, DAMAGES[kind])
    found = await verified(world)
    assert [one.type for one in found.types if not one.same] == [kind]


async def test_a_projection_with_a_hole_cannot_be_verified(world: Rebuilding) -> None:
    """Changes beyond a missing one are applied: the state is that of no position."""
    damage(world, "update product.progress set position = position - 2")
    damage(
        world,
        "delete from product.inbox where position = (select position + 1 from product.progress)",
    )
    with pytest.raises(PrwError, match="missing one") as refused:
        await verified(world)
    assert refused.value.code is Code.UNAVAILABLE


async def test_a_rebuild_that_is_not_what_was_accepted_does_not_serve(world: Rebuilding) -> None:
    """DIGEST_MISMATCH before the cutover. Fails where the rebuild does not compare."""

    class Damaged(Rebuilder):
        async def _compare(self, client: Any, shadow: Generation, reached: int) -> None:
            place = f"projection_{shadow.number}"
            damage(world, f"update {place}.merchant set name = 'Other'")  # noqa: S608  our name
            await super()._compare(client, shadow, reached)

    with pytest.raises(PrwError, match="merchant differ") as refused:
        await world.rebuilder(Damaged).run()
    assert refused.value.code is Code.DIGEST_MISMATCH
    assert (await world.serving()).number == 1
