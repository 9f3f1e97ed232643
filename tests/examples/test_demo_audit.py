"""The demo's check finds what is wrong: each of its figures, over a database that was doctored."""

from __future__ import annotations

from pathlib import Path

import pytest

from prw_examples.demo.audit.model import Figures
from prw_examples.demo.audit.service import Collected, audit
from prw_examples.demo.audit.store import open_books
from tests.examples.world import OFFERS, SCOPE, TRUTH, World, make_world

COLLECTED = Collected(fetched=4, kept=3)
SOUND = {
    "fetched": 4,
    "kept": 3,
    "submitted": 3,
    "accepted": 3,
    "in_review": 0,
    "public_items": 2,
    "positions": 5,
    "gaps": 0,
    "duplicates": 0,
    "merged_near_misses": 0,
    "split_same": 0,
    "untraceable_facts": 0,
    "missed_accepts": 0,
    "pairs_tested": {"same": 1, "different": 1},
}
OPEN_CASE = (
    "insert into resolver.review_case (tenant_id, case_id, catalog_id, kind, status, revision, reason, listing_id, "
    "source_id, listing_key, title, record, candidates, evidence, evidence_digest, observed_at, opened_at, updated_at) "
    "values ('ten_synth_a', 'case_b', 'cat_primary', 'conflict', 'awaiting_human', 1, 'r', 'lst_b', 'market', "
    "'http://market.example/b', '', '{}', '[]', '[1]', 'd', now(), now(), now())"
)
UNMAP_B = "delete from resolver.listing_mapping where listing_id = 'lst_b'"
SPLIT_B = "update projection_1.public_listing set item_id = 'itm_3' where listing_id = 'lst_b'"


@pytest.fixture
def world(
    resolver_database: dict[str, str], product_database: dict[str, str], tmp_path: Path
) -> World:
    """A sound world of the test's own."""
    return make_world(resolver_database["superuser"], product_database["superuser"], tmp_path)


async def figures(world: World) -> Figures:
    """What the check says of the world."""
    async with open_books(world.resolver_dsn, world.product_dsn, SCOPE) as books:
        return await audit(books, world.objects, TRUTH, COLLECTED)


async def test_a_sound_catalogue_has_no_fault(world: World) -> None:
    """The check cries no wolf, and names exactly the figures that scripts read."""
    found = await figures(world)
    assert found.as_json() == SOUND
    assert found.faults == {}


@pytest.mark.parametrize(
    ("database", "statement", "figure", "number"),
    [
        ("resolver", "delete from resolver.outbox where position in (2, 4)", "gaps", 2),
        ("product", "delete from product.inbox where position = 5", "gaps", 1),
        (
            "resolver",
            (
                "insert into resolver.listing_mapping select tenant_id, catalog_id, 'lst_twin', revision, item_id, "
                "item_revision, status, source_id, listing_key, merchant_id, url, title, observed_at, decision_id, "
                "evidence "
                "from resolver.listing_mapping where listing_id = 'lst_a'"
            ),
            "duplicates",
            1,
        ),
        (
            "resolver",
            (
                "alter table resolver.capture drop constraint capture_tenant_id_idempotency_key_key; "
                "update resolver.capture set idempotency_key = 'a' where idempotency_key = 'b'"
            ),
            "duplicates",
            1,
        ),
        (
            "resolver",
            "update resolver.listing_mapping set item_id = 'itm_1' where listing_id = 'lst_c'",
            "merged_near_misses",
            1,
        ),
        (
            "product",
            "update projection_1.public_listing set item_id = 'itm_1' where listing_id = 'lst_c'",
            "merged_near_misses",
            1,
        ),
        ("product", SPLIT_B, "split_same", 1),
        (
            "resolver",
            (
                "update resolver.catalog_revision set evidence = jsonb_set(evidence, '{0,selector,value}', '\"h2\"') "
                "where aggregate_id in ('itm_1', 'lst_c')"
            ),
            "untraceable_facts",
            2,
        ),
        (
            "resolver",
            (
                "update resolver.catalog_revision set evidence = jsonb_set(evidence, '{0,quote}', '\"Acme\"') "
                "where aggregate_id = 'itm_2'"
            ),
            "untraceable_facts",
            1,
        ),
        (
            "resolver",
            (
                "update resolver.catalog_revision set evidence = jsonb_set(evidence, '{0,capture_id}', '\"cap_b\"') "
                "where aggregate_id = 'itm_2'"
            ),
            "untraceable_facts",
            1,
        ),
        (
            "resolver",
            "update resolver.decision set actor_kind = 'person' where decision_id = 'dec_2'",
            "missed_accepts",
            1,
        ),
    ],
)
async def test_a_fault_shows_in_its_figure_and_in_no_other(
    world: World, database: str, statement: str, figure: str, number: int
) -> None:
    """Each figure is computed from what the databases hold, whatever their own constraints promise."""
    world.doctor(database, statement)
    assert (await figures(world)).as_json() == SOUND | {figure: number}


async def test_a_listing_left_in_review_without_a_reason_is_a_missed_accept(world: World) -> None:
    """A whole key of a trusted shop's item and no contradiction: the rule had to accept it, and no pair is decided."""
    world.doctor("resolver", UNMAP_B)
    world.doctor("resolver", OPEN_CASE)
    pairs = {"same": 0, "different": 1}
    expected = SOUND | {"missed_accepts": 1, "in_review": 1, "pairs_tested": pairs}
    assert (await figures(world)).as_json() == expected


@pytest.mark.parametrize(
    "excuse",
    [
        (
            "update resolver.normalised_value set value = '9' where capture_id = 'cap_b' "
            "and attribute_key = 'storage:capacity'"
        ),
        "update resolver.normalised_record set ambiguous = '{core:mpn}' where capture_id = 'cap_b'",
        (
            "update resolver.normalised_value set value = '00000000000024' where capture_id = 'cap_b' "
            "and attribute_key = 'core:gtin'"
        ),
        (
            "update resolver.normalised_value set basis = 'hint' where capture_id = 'cap_b' "
            "and attribute_key = 'core:pack_quantity'"
        ),
        "delete from resolver.normalised_value where capture_id = 'cap_b' and attribute_key = 'core:condition'",
        "update resolver.source set trusted_to_introduce = false",
        "update resolver.catalog_item set status = 'retired'",
    ],
)
async def test_a_listing_left_in_review_with_a_reason_is_none(world: World, excuse: str) -> None:
    """Contradiction, tornness, keys of two items, a hint, no whole key, no trust, no active item."""
    world.doctor("resolver", UNMAP_B)
    world.doctor("resolver", excuse)
    assert (await figures(world)).missed_accepts == 0


async def test_listings_apart_are_not_split_while_a_person_is_asked(world: World) -> None:
    """What is the same may be public under two items as long as a case is open about it."""
    world.doctor("product", SPLIT_B)
    world.doctor("resolver", OPEN_CASE)
    assert (await figures(world)).pairs.split_same == 0


@pytest.mark.parametrize("harm", ["missing", "changed"])
async def test_facts_whose_bytes_are_gone_are_untraceable(world: World, harm: str) -> None:
    """What rests on a page that is missing or damaged leads back to nothing: an item and a mapping."""
    stored = world.object_of(OFFERS[2])
    if harm == "missing":
        stored.unlink()
    else:
        stored.write_bytes(stored.read_bytes().replace(b"Acme", b"Acne"))
    assert (await figures(world)).faults == {"untraceable_facts": 2}
