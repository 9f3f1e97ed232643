"""`prw product doctor` finds what is wrong with a projection, by the invariant's name, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from prw_base.findings import Finding
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.apply.service import Applier, open_live
from prw_product.doctor.service import CHECKS, examine
from prw_product.follow.decode import decode
from tests.product import looking
from tests.product.events import CATALOG, EPOCH, TENANT, change, deliveries, mapping, story

SCOPE = Scope(TENANT, CATALOG)
DAMAGES = {
    "i3_missing": "delete from product.inbox where position = 3",
    "i8_not_processed": "update product.inbox set outcome = 'parked' where position = 3",
    "progress_stands": "update product.progress set position = 11",
    "parked_pairs": "delete from product.parked",
    "needs_without_event": "delete from product.parked",
    "i8_states": "update projection_1.merchant set revision = 9",
    "public_listings": "update projection_1.public_listing set mapping_revision = 9",
    "generations": "update product.generation set status = 'retired'",
    "refused": "insert into product.dead_letter select tenant_id, catalog_id, history_epoch, generation, 3, digest,"
    " 'X', 'because', digest from product.inbox where position = 3",
}
"""Of each check a damage that it must find."""


@pytest.fixture
async def filled(product_database: dict[str, str]) -> AsyncIterator[Database]:
    """A projection at rest, with an event that waits."""
    async with await Database.open(product_database["product_app"], max_size=2) as database:
        live = await open_live(database, SCOPE, EPOCH)
        applier = Applier(database, decode, live.generation)
        await applier.apply(deliveries([*story(), change(14, mapping("lst_9", "itm_9"))]))
        yield database


async def found(database: Database) -> list[Finding]:
    """What the doctor finds."""
    return await examine(database, SCOPE)


async def test_nothing_is_found_in_a_sound_projection(filled: Database) -> None:
    """What waits for another is no damage; nor is a catalogue that nothing serves."""
    assert await found(filled) == []
    assert await examine(filled, Scope(TENANT, "cat_none")) == []


@pytest.mark.parametrize("check", CHECKS)
async def test_a_damage_is_found_by_its_check(
    filled: Database, product_database: dict[str, str], check: str
) -> None:
    """I3, I8: with the place and what to do; a second look finds the same, since the first changed nothing."""
    with psycopg.connect(product_database["superuser"]) as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute(DAMAGES[check].encode())
    first = await found(filled)
    assert check in {one.check for one in first}
    assert all(one.place and one.what and one.remedy for one in first)
    before = looking.projection(product_database["superuser"])
    assert await found(filled) == first
    assert looking.projection(product_database["superuser"]) == before
