"""Publishing a vocabulary, on a database: what is published never changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from prw.errors import Code, PrwError
from prw_base.server.database import Database
from prw_resolver.access import service as access
from prw_resolver.vocabulary import service

TENANT, CATALOG = "ten_synth_a", "main"
OTHER = "ten_synth_b"


@pytest.fixture
async def db(resolver_database: dict[str, str]) -> AsyncIterator[Database]:
    """A resolver's database with two tenants, and nothing published."""
    async with await Database.open(resolver_database["resolver_app"]) as database:
        for tenant in (TENANT, OTHER):
            await access.put_tenant(database, tenant, tenant)
            await access.put_catalog(database, tenant, CATALOG, CATALOG)
        yield database


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """The packaged file with one passage written otherwise."""
    source = Path(service.__file__).with_name(service.PACKAGED).read_text("utf-8")
    assert old in source
    file = tmp_path / "vocabulary.toml"
    file.write_text(source.replace(old, new, 1), "utf-8")
    return file


async def test_publishing_again_changes_nothing(db: Database) -> None:
    """Everything is new at first and known afterwards; the first generation is active at once."""
    first = await service.publish(db, TENANT, CATALOG)
    again = await service.publish(db, TENANT, CATALOG)
    assert (first.known, first.active_generation) == (0, 1)
    assert (again.new, again.known, again.active_generation) == (0, first.new, 1)


async def test_what_is_loaded_is_what_was_published(db: Database) -> None:
    """A definition means the same in the file and in the database."""
    await service.publish(db, TENANT, CATALOG)
    async with db.transaction(TENANT) as conn:
        loaded = await service.load(conn, TENANT, CATALOG)
    packaged = service.read()
    assert {held.key: held for held in loaded.attributes} == {
        held.key: held for held in packaged.attributes
    }
    assert {held.id: held for held in loaded.classes} == {
        held.id: held for held in packaged.classes
    }
    assert loaded.generations == packaged.generations


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('title = "GTIN"', 'title = "EAN"', "attribute core:gtin version 1"),
        (
            'name = "gtin", attributes = ["core:gtin", ',
            'name = "gtin", attributes = [',
            "generation 1",
        ),
        ('parent = "storage_drive"', 'parent = "thing"', "the parent of class storage_ssd"),
        ("'\\bNVMe\\b', ", "", "the recognition of class storage_ssd version 1"),
    ],
)
async def test_another_meaning_under_the_same_version_is_refused(
    db: Database, tmp_path: Path, old: str, new: str, named: str
) -> None:
    """Versions are immutable; the refusal says which one, and nothing of the file is kept."""
    await service.publish(db, TENANT, CATALOG)
    with pytest.raises(PrwError) as refused:
        await service.publish(db, TENANT, CATALOG, changed(tmp_path, old, new))
    assert refused.value.code is Code.IMMUTABLE_METADATA_CONFLICT
    assert named in refused.value.message
    assert (await service.publish(db, TENANT, CATALOG)).new == 0


async def test_a_new_version_stands_beside_the_old_one_and_is_the_one_that_counts(
    db: Database, tmp_path: Path
) -> None:
    """Facts of the old version keep what they rest on."""
    await service.publish(db, TENANT, CATALOG)
    file = changed(tmp_path, 'version = 1\ntitle = "GTIN"', 'version = 2\ntitle = "GTIN or ISBN"')
    assert (await service.publish(db, TENANT, CATALOG, file)).new == 1
    async with db.transaction(TENANT) as conn:
        loaded = await service.load(conn, TENANT, CATALOG)
    gtin = loaded.attribute("core:gtin")
    assert gtin is not None
    assert (gtin.version, gtin.title) == (2, "GTIN or ISBN")


async def test_a_later_generation_is_a_candidate(db: Database, tmp_path: Path) -> None:
    """A generation serves lookups only once it is activated; the first one needs no backfill."""
    await service.publish(db, TENANT, CATALOG)
    file = changed(tmp_path, "[[generations]]\nnumber = 1", "[[generations]]\nnumber = 2")
    assert (await service.publish(db, TENANT, CATALOG, file)).active_generation == 1
    async with db.transaction(TENANT) as conn:
        assert await service.active_generation(conn, TENANT, CATALOG) == 1


async def test_a_catalogue_sees_its_own_vocabulary_only(db: Database) -> None:
    """What one tenant published is nothing to another."""
    await service.publish(db, TENANT, CATALOG)
    async with db.transaction(OTHER) as conn:
        assert await service.active_generation(conn, TENANT, CATALOG) is None
        assert (await service.load(conn, TENANT, CATALOG)).attributes == ()


async def test_an_unknown_catalogue_and_an_unknown_normaliser_are_refused(
    db: Database, tmp_path: Path
) -> None:
    """The message says what is wrong."""
    with pytest.raises(PrwError) as unknown:
        await service.publish(db, TENANT, "nowhere")
    assert unknown.value.code is Code.NOT_FOUND
    with pytest.raises(PrwError) as wrong:
        service.read(changed(tmp_path, 'normaliser = "gtin"', 'normaliser = "magic"'))
    assert wrong.value.code is Code.VALIDATION_FAILED
    assert "magic" in wrong.value.message


async def test_the_server_s_role_cannot_change_what_is_published(db: Database) -> None:
    """INV-07 rests on definitions that nobody rewrites."""
    await service.publish(db, TENANT, CATALOG)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.transaction(TENANT) as conn:
            await conn.execute("update resolver.attribute_definition set unit = 'x'")


async def test_the_database_knows_which_attributes_belong_to_a_class(db: Database) -> None:
    """INV-07: inherited classes included."""
    await service.publish(db, TENANT, CATALOG)
    question = "select resolver.attribute_applies(%s, %s, %s, %s, 1)"
    async with db.transaction(TENANT) as conn:
        for class_id, expected in (("storage_ssd", True), ("thing", False)):
            cursor = await conn.execute(question, (TENANT, CATALOG, class_id, "storage:capacity"))
            assert await cursor.fetchone() == (expected,)
