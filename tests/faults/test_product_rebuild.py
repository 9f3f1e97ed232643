"""The projection is built anew beside the live one and swapped in: nothing lost, nothing mixed (T11, I9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prw.errors import Code, PrwError
from prw_base.faults import InjectedFault, arm, disarm
from prw_base.server.postgres import Cluster
from prw_product.publish.model import Generation
from prw_product.publish.store import enter_serving
from prw_product.rebuild.client import connector
from prw_product.rebuild.model import Manifest, Phase, Progress
from prw_product.rebuild.service import Rebuilder, RebuildSettings
from prw_product.serve.model import ItemQuery
from prw_product.serve.service import Catalogue
from prw_product.serve.store import count_public
from tests.faults.rebuilding import NAMES, Rebuilding, rebuilding, recorder
from tests.product import looking
from tests.resolver.catalogue import SCOPE
from tests.support import postgres
from tests.support.waiting import until

POINTS = (
    "rebuild.after_shadow",
    "rebuild.after_object",
    "rebuild.after_keys",
    "rebuild.after_batch",
    "rebuild.before_cutover",
)
CATALOG_OF = """
select 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod) || a.attnotnull
  from pg_attribute a join pg_class c on c.oid = a.attrelid
 where c.relnamespace = to_regnamespace(%s) and a.attnum > 0 and c.relkind in ('r', 'v')
union all
select 'constraint', k.conrelid::regclass::text, k.conname, pg_get_constraintdef(k.oid)
  from pg_constraint k where k.connamespace = to_regnamespace(%s)
union all
select 'index', i.tablename, i.indexname, i.indexdef from pg_indexes i where i.schemaname = %s
union all
select 'policy', p.tablename, p.policyname, p.qual || p.with_check || p.roles::text
  from pg_policies p where p.schemaname = %s
union all
select 'table', c.relname, c.relacl::text, c.relrowsecurity || ' ' || c.relforcerowsecurity
  from pg_class c where c.relnamespace = to_regnamespace(%s) and c.relkind in ('r', 'v')
"""


@pytest.fixture
async def world(
    resolver_database: dict[str, str], product_database: dict[str, str], tmp_path: Path
) -> AsyncIterator[Rebuilding]:
    """A resolver with a history, and a product."""
    async with rebuilding(resolver_database, product_database, tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def unarmed() -> Iterator[None]:
    """No fault outlives its test."""
    yield
    disarm()


class Interleaved(Rebuilder):
    """A rebuild between whose steps something else happens."""

    async def _make_shadow(self, manifest: Any) -> Generation:
        shadow = await super()._make_shadow(manifest)
        await self.between()
        return shadow

    async def between(self) -> None:
        """What happens while the shadow is loaded."""


async def test_i9_a_rebuilt_projection_is_the_live_one(world: Rebuilding, cluster: Cluster) -> None:
    """fold(snapshot at W + tail to H) = fold(all changes to H), with changes on both sides of W.

    Held against a product that has only ever followed.
    """

    class Busy(Interleaved):
        async def between(self) -> None:
            await world.observe("12.00", *NAMES[:3], "c4")

    await world.follow_to_end()
    told, watch = recorder()
    rebuilt = await world.rebuilder(Busy, watch).run()
    assert rebuilt.exported_at < rebuilt.served_at == world.cursor
    assert (await world.serving()).number == rebuilt.generation
    assert {one.phase for one in told} >= {Phase.LOADING, Phase.CATCHING_UP, Phase.SERVED}
    with postgres.fresh_database(cluster, postgres.PRODUCT) as dsns:
        async with world.beside(dsns) as other:
            await other.follow_to_end("other")
            assert world.heads(rebuilt.generation) == other.heads(1)
            assert len(other.heads(1)["public_listing"]) == 5


async def test_a_finished_shadow_is_what_a_first_generation_is(world: Rebuilding) -> None:
    """Columns, keys, indexes, policies and grants, though it was loaded without most of them."""
    rebuilt = await world.rebuilder().run()
    first, second = (
        {
            tuple(str(value).replace(place, "projection") for value in row)
            for row in looking.rows(world.dsn, CATALOG_OF, *[place] * 5)
        }
        for place in ("projection_1", f"projection_{rebuilt.generation}")
    )
    assert first == second
    assert len(first) > 100


async def test_t11_an_empty_stream_is_rebuilt(
    resolver_database: dict[str, str], product_database: dict[str, str], tmp_path: Path
) -> None:
    """To an empty projection at position 0, which then follows."""
    async with rebuilding(resolver_database, product_database, tmp_path, empty=True) as world:
        rebuilt = await world.rebuilder().run()
        assert (rebuilt.exported_at, rebuilt.served_at, rebuilt.rows) == (0, 0, 0)
        await world.observe("10.00", *NAMES)
        await world.follow_to_end()
        assert len(world.heads(rebuilt.generation)["public_item"]) == 3


@pytest.mark.parametrize("point", POINTS)
async def test_t11_a_rebuild_that_breaks_anywhere_leaves_the_live_one(
    world: Rebuilding, point: str
) -> None:
    """It serves and follows on; nothing of the shadow is left, the lease is back, and the next rebuild ends well."""
    await world.follow_to_end()

    class Busy(Interleaved):
        async def between(self) -> None:
            await world.observe("12.00", *NAMES)

    arm(f"{point}=raise")
    with pytest.raises(InjectedFault):
        await world.rebuilder(Busy).run()
    assert (await world.serving()).number == 1
    assert world.schemas() == ["projection_1"]
    assert world.leases == 0
    await world.follow_to_end()
    rebuilt = await world.rebuilder().run()
    assert (await world.serving()).number == rebuilt.generation


@pytest.mark.parametrize("point", POINTS)
async def test_t11_what_a_killed_rebuild_left_is_taken_away_by_the_next(
    world: Rebuilding, point: str
) -> None:
    """As after kill -9: no clean-up of its own ran. Fails where shadows that are left over are not looked for."""

    class Killed(Interleaved):
        async def between(self) -> None:
            await world.observe("12.00", *NAMES)

        async def _abort(self, shadow: Generation, error: BaseException) -> None:
            pass

    arm(f"{point}=raise")
    with pytest.raises(InjectedFault):
        await world.rebuilder(Killed).run()
    assert len(world.schemas()) == 2
    rebuilt = await world.rebuilder().run()
    left = [name for name in world.schemas() if name != "projection_1"]
    assert left == [f"projection_{rebuilt.generation}"]
    await world.follow_to_end()


async def test_t11_a_rebuild_that_ends_right_after_the_cutover_serves(world: Rebuilding) -> None:
    """The swap is one transaction: what follows it may be lost, and is made up for."""
    await world.follow_to_end()
    arm("rebuild.after_cutover=raise")
    with pytest.raises(InjectedFault):
        await world.rebuilder().run()
    served = await world.serving()
    assert served.number > 1
    await world.observe("13.00", *NAMES)
    await world.follow_to_end()
    assert len(world.heads(served.number)["public_item"]) == 3


async def test_t11_of_two_rebuilders_one_is_told_to_wait(world: Rebuilding) -> None:
    """REBUILD_IN_PROGRESS, at once; the other's ends well, and afterwards the turn is free."""
    first, second = await asyncio.gather(
        world.rebuilder().run(), world.rebuilder().run(), return_exceptions=True
    )
    refused = next(one for one in (first, second) if isinstance(one, BaseException))
    assert isinstance(refused, PrwError)
    assert refused.code is Code.REBUILD_IN_PROGRESS
    await world.rebuilder().run()


async def test_t11_a_cutover_never_goes_back_behind_the_live_projection(world: Rebuilding) -> None:
    """H ≥ L: a live follower that got further meanwhile is caught up with. Fails where L is not looked at."""
    async with world.following() as follower:
        lead: list[int] = []

        class Overtaken(Rebuilder):
            async def _cut_over(self, shadow: Generation, allowed: int, reached: int) -> Any:
                if not lead:
                    await world.observe("12.00", *NAMES)
                    await until(lambda: follower.standing.progress == world.cursor)
                    lead.append(world.cursor)
                return await super()._cut_over(shadow, allowed, reached)

        rebuilt = await world.rebuilder(Overtaken).run()
        assert rebuilt.served_at >= lead[0]
        await world.observe("13.00", *NAMES)
        await until(lambda: follower.standing.progress == world.cursor)
    found = looking.rows(world.dsn, "select generation, position from product.progress")
    assert found == [(rebuilt.generation, world.cursor)]


async def test_t11_readers_see_the_old_or_the_new_and_no_error(world: Rebuilding) -> None:
    """All prices of a page are of one generation; the old tables go only once nobody reads them."""
    await world.follow_to_end()
    await world.observe("99.00", *NAMES)
    catalogue, over = Catalogue(world.database, SCOPE), asyncio.Event()
    seen: set[frozenset[str]] = set()

    async def reader() -> None:
        while not over.is_set():
            page = await catalogue.list_items(ItemQuery())
            prices = frozenset(
                str(offer.price_amount) for one in page.items for offer in one.offers
            )
            seen.add(prices)

    readers = [asyncio.create_task(reader()) for _ in range(3)]
    await until(lambda: frozenset({"11.00"}) in seen)
    await world.rebuilder().run()
    await until(lambda: frozenset({"99.00"}) in seen)
    over.set()
    await asyncio.gather(*readers)
    assert seen == {frozenset({"11.00"}), frozenset({"99.00"})}


async def test_t11_a_reader_of_the_old_generation_keeps_it_to_its_end(world: Rebuilding) -> None:
    """Its rows go with the next rebuild. Fails where they are dropped without looking who reads."""
    await world.follow_to_end()
    settings = RebuildSettings(SCOPE, readers=timedelta(milliseconds=50))
    async with world.database.transaction(SCOPE.tenant_id, read_only=True) as reader:
        assert await enter_serving(reader, SCOPE) is not None
        await Rebuilder(world.database, connector(world.channel, "product"), settings).run()
        assert await count_public(reader, SCOPE) == (3, 4)
    held = "select count(*) from projection_1.public_item"
    assert looking.rows(world.dsn, held) == [(3,)]
    await world.rebuilder().run()
    assert looking.rows(world.dsn, held) == [(0,)]


async def test_t11_a_projection_ahead_of_its_stream_is_mended(world: Rebuilding) -> None:
    """A history that was taken back never comes as far as what was applied from it: the rebuild ends all the same."""
    await world.follow_to_end()
    ahead = "update product.progress set position = position + 5 returning position"
    assert looking.rows(world.dsn, ahead) == [(world.cursor + 5,)]
    async with asyncio.timeout(20):
        rebuilt = await world.rebuilder().run()
    assert rebuilt.served_at == world.cursor


async def test_t11_a_rebuild_that_ends_while_it_is_exported_gives_its_lease_back(
    world: Rebuilding,
) -> None:
    """Nothing holds the stream's changes for it any longer. Fails where only a loaded export's lease is released."""

    def watch(progress: Progress) -> None:
        raise InjectedFault(progress.phase)

    with pytest.raises(InjectedFault, match=Phase.EXPORTING):
        await world.rebuilder(watch=watch).run()
    assert world.leases == 0


async def test_t12_a_damaged_manifest_is_refused(world: Rebuilding) -> None:
    """DIGEST_MISMATCH where it names other rows than were exported; nothing is loaded."""

    class Told(Rebuilder):
        async def _export(self, client: Any) -> Any:
            read = client.read_manifest

            async def damaged(export_id: str) -> Manifest:
                told: Manifest = await read(export_id)
                return replace(told, objects=told.objects[1:])

            client.read_manifest = damaged
            return await super()._export(client)

    with pytest.raises(PrwError) as refused:
        await world.rebuilder(Told).run()
    assert refused.value.code is Code.DIGEST_MISMATCH
    assert world.schemas() == ["projection_1"]


async def test_t7_a_change_that_cannot_be_applied_stops_a_rebuild(world: Rebuilding) -> None:
    """VALIDATION_FAILED with its position and reason; nothing is skipped and the live one serves on."""
    await world.follow_to_end()

    class Poisoned(Interleaved):
        async def between(self) -> None:
            await world.observe("12.00", *NAMES)
            world.exporting.held.one(
                "update resolver.outbox set event = 'nonsense' where position = ("
                "select max(position) - 1 from resolver.outbox) returning 1"
            )

    with pytest.raises(PrwError, match="the rebuild stands at") as stopped:
        await world.rebuilder(Poisoned).run()
    assert stopped.value.code is Code.VALIDATION_FAILED
    assert (await world.serving()).number == 1


@pytest.mark.parametrize("damage", ["flipped", "short", "long"])
async def test_t12_a_damaged_object_is_refused(world: Rebuilding, damage: str) -> None:
    """DIGEST_MISMATCH by its name, with nothing of it kept; the live one serves on."""

    class Damaged(Interleaved):
        async def between(self) -> None:
            path = sorted(world.exporting.folder.glob("*/*.zst"))[3]
            held = bytearray(path.read_bytes())
            held[len(held) // 2] ^= 0x55 if damage == "flipped" else 0
            changed = {"flipped": held, "short": held[:-9], "long": held + b"x"}
            path.write_bytes(bytes(changed[damage]))

    with pytest.raises(PrwError) as refused:
        await world.rebuilder(Damaged).run()
    assert refused.value.code is Code.DIGEST_MISMATCH
    assert world.schemas() == ["projection_1"]


async def test_a_lease_that_runs_out_begins_again_from_a_new_export(world: Rebuilding) -> None:
    """What comes after the position may be gone, so it is not gone on with."""
    expired: list[bool] = []

    class Late(Interleaved):
        async def between(self) -> None:
            if not expired:
                world.exporting.held.one(
                    "update resolver.stream_lease set expires_at = now() returning 1"
                )
                expired.append(True)

    rebuilt = await world.rebuilder(Late).run()
    assert expired
    assert (await world.serving()).number == rebuilt.generation
    assert world.exporting.held.one("select count(*) from resolver.export") == 2


async def test_a_follower_whose_changes_are_gone_rebuilds_by_itself(world: Rebuilding) -> None:
    """CURSOR_PRUNED: it goes on from an export, and follows what comes after."""
    await world.exporting.held.fill(0)
    assert await world.exporting.held.pruner.round(asyncio.Event()) > 0
    async with world.following(rebuild=world.rebuilder().run) as follower:
        await until(lambda: follower.standing.progress == world.cursor)
        await world.observe("12.00", *NAMES)
        await until(lambda: follower.standing.progress == world.cursor)
    served = await world.serving()
    assert served.number > 1
    assert len(world.heads(served.number)["public_item"]) == 3


async def test_a_follower_without_leave_to_rebuild_says_what_to_do(world: Rebuilding) -> None:
    """It stops, and names the command."""
    await world.exporting.held.fill(0)
    await world.exporting.held.pruner.round(asyncio.Event())
    with pytest.raises(PrwError, match="prw product rebuild") as stopped:
        await world.follower().run()
    assert stopped.value.code is Code.CURSOR_PRUNED
