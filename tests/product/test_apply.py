"""Applying batches to a real database: exactly once in effect, whatever the delivery (AW-04)."""

from __future__ import annotations

import hashlib
import random
import string
from dataclasses import replace

import psycopg
import pytest

from prw.changes.v1 import change_pb2 as pb
from prw_base import faults
from prw_base.server.database import Database
from prw_product.apply.model import ContentChanged, DeadCode, Delivery, Event, Poison
from prw_product.apply.service import Applier, GenerationMoved, open_live
from prw_product.follow.decode import decode
from prw_product.publish.model import Release
from tests.product import looking
from tests.product.conftest import SCOPE
from tests.product.events import (
    EPOCH,
    change,
    deliveries,
    history,
    item,
    mapping,
    merchant,
    need,
    price,
    release,
    story,
)


async def test_a_history_in_order_is_applied_whole(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """Every position is applied and progress is the last one (AW-04)."""
    applied = await applier.apply(deliveries(story()))
    assert (applied.progress, applied.applied) == (12, 12)
    assert set(looking.outcomes(product_database["superuser"]).values()) == {"applied"}
    looking.check_invariants(product_database["superuser"])


async def test_redelivery_changes_nothing(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """What is at or below progress, and what the inbox has above it, is a duplicate (AW-04)."""
    await applier.apply(deliveries(story()[:5]))
    await applier.apply(deliveries(story()[7:8]))
    before = looking.projection(product_database["superuser"])
    again = await applier.apply(deliveries(story()[:5]))
    assert (again.progress, again.applied, again.duplicates) == (5, 0, 5)
    assert looking.projection(product_database["superuser"]) == before


async def test_an_event_at_two_positions_is_applied_once(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """The event id is what is deduplicated; its second position is processed as a duplicate."""
    once = item("itm_1")
    applied = await applier.apply(deliveries([change(1, once), change(2, once)]))
    assert (applied.progress, applied.applied, applied.duplicates) == (2, 1, 1)
    assert looking.outcomes(product_database["superuser"]) == {1: "applied", 2: "duplicate"}


@pytest.mark.parametrize("seed", range(6))
async def test_any_order_and_repetition_ends_the_same(
    applier: Applier, product_database: dict[str, str], seed: int
) -> None:
    """Reordered, doubled and in batches of any size, a history converges (I8)."""
    chance = random.Random(seed)
    sent = [*story(), *chance.choices(story(), k=6)]
    chance.shuffle(sent)
    while sent:
        size = chance.randint(1, 5)
        batch, sent = sent[:size], sent[size:]
        await applier.apply(deliveries(batch))
        looking.check_invariants(product_database["superuser"])
    dsn = product_database["superuser"]
    assert (looking.progress(dsn), looking.parked(dsn)) == (12, [])
    assert looking.rows(
        dsn, "select listing_id, item_id from projection_1.public_listing order by 1"
    ) == [("lst_1", "itm_1"), ("lst_2", "itm_1"), ("lst_3", "itm_2")]
    assert looking.rows(
        dsn, "select item_id, publication_revision from projection_1.public_item order by 1"
    ) == [("itm_1", 2), ("itm_2", 1)]


async def test_a_hole_holds_progress_until_it_is_filled(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """Progress is the contiguous prefix, never the batch's last position (T15)."""
    made = history(item("itm_1"), item("itm_2"), item("itm_3"))
    assert (await applier.apply(deliveries([made[0], made[2]]))).progress == 1
    assert (await applier.apply(deliveries([made[1]]))).progress == 3


async def test_an_older_revision_is_stale_and_processed(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """If revision 2 arrives before 1, 1 is later ignored as stale and changes nothing current."""
    made = history(merchant(stated="Old"), merchant(stated="New", revision=2))
    await applier.apply(deliveries([made[1]]))
    applied = await applier.apply(deliveries([made[0]]))
    assert (applied.progress, applied.stale) == (2, 1)
    dsn = product_database["superuser"]
    assert looking.rows(dsn, "select name, revision from projection_1.merchant") == [("New", 2)]


async def test_a_parked_chain_is_released_transitively(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """What waits for what waits is released with it, each in its own batch before (AW-04)."""
    made = history(item("itm_1"), mapping("lst_1", "itm_1"), release("itm_1", {"lst_1": 1}))
    assert (await applier.apply(deliveries([made[2]]))).parked == 1
    assert (await applier.apply(deliveries([made[1]]))).parked == 1
    dsn = product_database["superuser"]
    assert (looking.progress(dsn), looking.parked(dsn)) == (0, [2, 3])
    last = await applier.apply(deliveries([made[0]]))
    assert (last.progress, last.applied, last.released) == (3, 3, 2)
    assert looking.rows(dsn, "select count(*) from product.parked_need") == [(0,)]


async def test_a_long_parked_chain_over_batches_is_released_at_once(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """Depth costs no more transactions: fifty links fall with the first (T6)."""
    chain = [item("itm_1")]
    chain += [
        item(f"itm_{n}", needs=[need("catalog_item", f"itm_{n - 1}", 1)]) for n in range(2, 51)
    ]
    made = history(*chain)
    for late in reversed(made[1:]):
        await applier.apply(deliveries([late]))
    assert (await applier.apply(deliveries(made[:1]))).progress == 50
    looking.check_invariants(product_database["superuser"])


async def test_missing_and_cyclic_dependencies_hold_progress(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """What can never be met waits for ever, and the rest goes on above it (T6)."""
    first = item("itm_1", needs=[need("catalog_item", "itm_2", 1)])
    second = item("itm_2", needs=[need("catalog_item", "itm_1", 1)])
    made = history(first, second, item("itm_3"), mapping("lst_9", "itm_9"))
    applied = await applier.apply(deliveries(made))
    assert (applied.progress, applied.applied, applied.parked) == (0, 1, 3)
    assert looking.parked(product_database["superuser"]) == [1, 2, 4]


async def test_a_newer_revision_makes_a_parked_one_stale(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """A waiting event that its own aggregate has overtaken waits no longer."""
    made = history(mapping("lst_1", "itm_9"), mapping("lst_1", "itm_1", revision=2, needs=[]))
    assert (await applier.apply(deliveries(made[:1]))).parked == 1
    applied = await applier.apply(deliveries(made[1:]))
    assert (applied.progress, applied.released) == (2, 1)
    assert looking.outcomes(product_database["superuser"]) == {1: "stale", 2: "applied"}


_TWICE = release("itm_1", {"lst_1": 1})
_TWICE.release.listings.append(pb.ReleasedListing(listing_id="lst_1", mapping_revision=1))
_NUL = item("itm_1", title="a\0b")
_UNPRICED = price("lst_1", amount="12,50")
_BODILESS = item("itm_1")
_BODILESS.ClearField("catalog_item")
_NEWER = item("itm_1")
_NEWER.aggregate.type = 99  # type: ignore[assignment]  # a kind of a newer resolver
_LONG = item("itm_1")
_LONG.catalog_item.class_id = "c" * 3000
_OTHER = item("itm_1")
_OTHER.aggregate.id = "itm_2"


@pytest.mark.parametrize(
    "bad",
    [b"\xff\xff\xff", _TWICE, _NUL, _UNPRICED, _BODILESS, _NEWER, _LONG, _OTHER],
    ids=["garbage", "doubled", "nul", "price", "body", "kind", "long class", "other aggregate"],
)
async def test_poison_is_isolated_and_holds_progress(
    applier: Applier, product_database: dict[str, str], bad: pb.Event | bytes
) -> None:
    """An event that cannot be decoded is kept and alarmed; all that follows is applied (T7)."""
    made = [change(1, item("itm_0")), change(2, bad), change(3, item("itm_7"))]
    applied = await applier.apply(deliveries(made))
    dsn = product_database["superuser"]
    assert (applied.progress, applied.applied, applied.refused) == (1, 2, 1)
    assert looking.dead_letters(dsn) == [(2, "SCHEMA_INVALID")]
    assert looking.outcomes(dsn) == {1: "applied", 2: "poison", 3: "applied"}
    again = await applier.apply(deliveries(made))
    assert again.progress == 1
    assert looking.rows(dsn, "select times from product.dead_letter") == [(2,)]


async def test_poison_at_two_positions_and_its_cure_do_not_collide(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """What is not understood does not take the event's id from what is."""
    good = item("itm_1")
    bad = item("itm_1", title="a\0b")
    made = [change(1, bad), change(2, bad), change(3, good)]
    await applier.apply(deliveries(made[:1]))
    applied = await applier.apply(deliveries(made))
    assert (applied.progress, applied.applied) == (0, 1)
    outcomes = looking.outcomes(product_database["superuser"])
    assert outcomes == {1: "poison", 2: "poison", 3: "applied"}


async def test_what_the_tables_refuse_is_found_among_the_good(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """A second release of one item breaks a key: it alone is poison, the batch is applied (T7)."""
    second = release("itm_1", {}, title="Another")
    second.aggregate.id = second.release.release_id = "rel_other"
    second.event_id = "evt_other"
    made = history(item("itm_1"), release("itm_1", {}), second, item("itm_3"))
    applied = await applier.apply(deliveries(made))
    dsn = product_database["superuser"]
    assert (applied.progress, applied.applied, applied.refused) == (2, 3, 1)
    assert looking.dead_letters(dsn) == [(3, "NOT_APPLICABLE")]
    assert looking.rows(dsn, "select title from projection_1.public_item") == [("Aurora P5 1 TB",)]


async def test_what_no_index_holds_is_isolated(
    applier: Applier, database: Database, product_database: dict[str, str]
) -> None:
    """A limit of PostgreSQL is the event's defect, not the database's absence to wait out (T7)."""
    good, bad = deliveries(history(item("itm_1"), release("itm_1", {})))
    noise = "".join(random.Random(1).choices(string.printable, k=9000))

    def unbounded(given: Delivery) -> Event | Poison:
        event = decode(given)
        if given.position == 1 or isinstance(event, Poison):
            return event
        assert isinstance(event.body, Release)
        return replace(event, body=replace(event.body, class_id=noise))

    careless = Applier(database, unbounded, applier.generation)
    assert (await careless.apply([good, bad])).progress == 1
    dsn = product_database["superuser"]
    assert looking.dead_letters(dsn) == [(2, "NOT_APPLICABLE")]
    assert (await applier.apply([bad])).progress == 2
    assert looking.dead_letters(dsn) == []


async def test_a_parked_event_that_proves_poison_blames_nobody_else(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """What releases it is applied, and what waited becomes poison with its reason (T7)."""
    second = release("itm_1", {}, item_revision=2)
    second.aggregate.id = second.release.release_id = "rel_other"
    second.event_id = "evt_other"
    made = history(item("itm_1"), release("itm_1", {}), second, item("itm_1", revision=2))
    await applier.apply(deliveries(made[:3]))
    applied = await applier.apply(deliveries(made[3:]))
    dsn = product_database["superuser"]
    assert (applied.progress, applied.applied, applied.refused) == (2, 1, 1)
    assert looking.outcomes(dsn) == {1: "applied", 2: "applied", 3: "poison", 4: "applied"}
    assert looking.parked(dsn) == []


async def test_an_upgrade_that_understands_a_poison_event_redrives_it(
    applier: Applier, database: Database, product_database: dict[str, str]
) -> None:
    """Delivered again to a version that can decode it, a poison position is applied and resolved."""
    made = deliveries(history(item("itm_1"), item("itm_2")))
    older = Applier(database, _without_first, applier.generation)
    assert (await older.apply(made)).progress == 0
    assert (await applier.apply(made)).progress == 2
    dsn = product_database["superuser"]
    assert looking.dead_letters(dsn) == []
    assert looking.outcomes(dsn) == {1: "applied", 2: "applied"}


def _without_first(given: Delivery) -> Event | Poison:
    if given.position > 1:
        return decode(given)
    digest = hashlib.sha256(given.event).digest()
    return Poison(given, digest, DeadCode.SCHEMA_INVALID, "not known to this version")


async def test_an_older_epoch_is_audited_and_ignored(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """An event of a fenced history is never applied, relabelled or counted as progress."""
    made = [change(1, item("itm_old", epoch=EPOCH - 1)), change(1, item("itm_1"))]
    applied = await applier.apply(deliveries(made))
    dsn = product_database["superuser"]
    assert (applied.progress, applied.applied, applied.ignored) == (1, 1, 1)
    assert looking.rows(dsn, "select history_epoch, followed_epoch from product.ignored_event") == [
        (EPOCH - 1, EPOCH)
    ]
    assert looking.rows(dsn, "select item_id from projection_1.item_revision") == [("itm_1",)]


async def test_a_newer_epoch_is_told_and_not_applied(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """The applier cannot know whether the epoch is real: it says so and applies nothing of it."""
    applied = await applier.apply(deliveries([change(1, item("itm_1", epoch=EPOCH + 1))]))
    assert (applied.newest_epoch, applied.progress, applied.applied) == (EPOCH + 1, 0, 0)


async def test_a_foreign_tenants_event_goes_to_the_dead_letters(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """Scope comes before everything else: SCOPE_NOT_PROJECTED, and progress is held."""
    foreign = item("itm_1")
    foreign.stream.tenant_id = "ten_synth_b"
    applied = await applier.apply(deliveries(history(foreign, item("itm_2"))))
    dsn = product_database["superuser"]
    assert (applied.progress, applied.refused, applied.applied) == (0, 1, 1)
    assert looking.dead_letters(dsn) == [(1, "SCOPE_NOT_PROJECTED")]
    assert looking.outcomes(dsn) == {2: "applied"}


async def test_other_content_at_a_known_position_stops(
    applier: Applier, product_database: dict[str, str]
) -> None:
    """One position has one digest for ever; another means that histories have parted (I7)."""
    await applier.apply(deliveries(history(item("itm_1"))))
    with pytest.raises(ContentChanged):
        await applier.apply(deliveries(history(item("itm_1", title="Other"))))


@pytest.mark.parametrize("point", ["apply.before_commit", "apply.mid_projection"])
async def test_a_failure_before_the_commit_leaves_nothing(
    applier: Applier, product_database: dict[str, str], point: str
) -> None:
    """Inbox, projection, parking and progress are one transaction (AW-04)."""
    faults.arm(f"{point}=raise@1")
    with pytest.raises(faults.InjectedFault):
        await applier.apply(deliveries(story()))
    dsn = product_database["superuser"]
    assert (looking.progress(dsn), looking.outcomes(dsn)) == (0, {})
    assert all(not found for found in looking.projection(dsn).values())
    assert (await applier.apply(deliveries(story()))).progress == 12


async def test_an_applier_ends_when_another_generation_serves(
    applier: Applier, database: Database, product_database: dict[str, str]
) -> None:
    """After a cutover the former generation's consumer applies nothing more."""
    dsn = product_database["superuser"]
    looking_at = (SCOPE.tenant_id, SCOPE.catalog_id, EPOCH)
    _cut_over(dsn, looking_at)
    with pytest.raises(GenerationMoved):
        await applier.apply(deliveries(story()))
    live = await open_live(database, SCOPE, EPOCH)
    assert (live.generation.number, live.progress) == (2, 7)


def _cut_over(dsn: str, stream: tuple[str, str, int]) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("select product.create_generation(2)")
        conn.execute(
            "insert into product.generation (tenant_id, catalog_id, generation, history_epoch, status)"
            " values (%s, %s, 2, %s, 'live')",
            stream,
        )
        conn.execute(
            "insert into product.progress (tenant_id, catalog_id, generation, history_epoch, position)"
            " values (%s, %s, 2, %s, 7)",
            stream,
        )
        conn.execute("update product.serving_generation set generation = 2")
