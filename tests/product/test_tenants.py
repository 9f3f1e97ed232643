"""Two tenants in one database: neither sees or writes a row of the other, in any table."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from prw.errors import Code, PrwError
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.apply.model import Delivery
from prw_product.apply.service import Applier, open_live
from prw_product.follow.decode import decode
from prw_product.follow.model import Condition
from prw_product.follow.store import tell_condition
from prw_product.serve.model import ItemQuery
from prw_product.serve.service import Catalogue
from tests.product import looking
from tests.product.conftest import SCOPE
from tests.product.events import CATALOG, EPOCH, change, deliveries, item, mapping, source, story

OTHER = Scope("ten_synth_b", CATALOG)
KEYS_OF_SHADOWS = "product.shadow_key"
"""Names no tenant's rows, only keys of schemas; nobody but the owner's functions reads or writes it."""


@pytest.fixture
async def filled(
    database: Database, applier: Applier, product_database: dict[str, str]
) -> Database:
    """A projection of ``ten_synth_a`` with rows in every table."""
    odd = [
        change(13, mapping("lst_9", "itm_9")),
        change(14, b"\xff\xff"),
        change(15, source()),
        change(1, item("itm_old", epoch=EPOCH - 1)),
    ]
    await applier.apply(deliveries([*story(), *odd]))
    await tell_condition(database, SCOPE, Condition.FOLLOWING, "", "")
    rebuilt = "insert into product.rebuild values (%s, %s, 2, 3, 'exp_1', 4, 'failed') returning 1"
    looking.rows(product_database["superuser"], rebuilt, SCOPE.tenant_id, CATALOG)
    return database


def _count(dsn: str, table: str, tenant: str | None, role: str = "product_app") -> int:
    with psycopg.connect(dsn) as conn:
        conn.execute(f"set local role {role}".encode())
        conn.execute("select set_config('app.tenant_id', %s, true)", (tenant or "",))
        (found,) = conn.execute(f"select count(*) from {table}".encode()).fetchone() or (0,)  # noqa: S608  our names
        return int(found)


@pytest.mark.parametrize("table", looking.GUARDED)
async def test_no_table_shows_another_tenants_rows(
    filled: Database, product_database: dict[str, str], table: str
) -> None:
    """Forced row-level security on every table, no tenant set included; the owner is bound too."""
    dsn = product_database["product_app"]
    assert _count(dsn, table, SCOPE.tenant_id) > 0
    assert _count(dsn, table, OTHER.tenant_id) == 0
    assert _count(dsn, table, None) == 0
    assert _count(product_database["owner"], table, OTHER.tenant_id, "prw_owner") == 0


async def test_every_table_is_in_the_sweep(product_database: dict[str, str]) -> None:
    """A table that is added later and not guarded turns this red."""
    query = (
        "select schemaname || '.' || tablename from pg_tables"
        " where schemaname = 'product' or schemaname like 'projection%%'"
    )
    found = {row[0] for row in looking.rows(product_database["superuser"], query)}
    assert found == set(looking.GUARDED) | {KEYS_OF_SHADOWS}
    with pytest.raises(errors.InsufficientPrivilege):
        looking.rows(product_database["product_app"], f"table {KEYS_OF_SHADOWS}")
    unforced = "select relname from pg_class where relname = any(%s) and not relforcerowsecurity"
    names = [table.partition(".")[2] for table in looking.GUARDED]
    assert looking.rows(product_database["superuser"], unforced, names) == []
    unled = (
        "select c.relname from pg_index i join pg_class c on c.oid = i.indrelid"
        " join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]"
        " where c.relname = any(%s) and a.attname <> 'tenant_id'"
        " and c.relnamespace::regnamespace::text = any(%s)"
    )
    schemas = ["product", "projection_1"]
    assert looking.rows(product_database["superuser"], unled, names, schemas) == []


@pytest.mark.parametrize("table", ["product.inbox", "projection_1.merchant"])
async def test_no_row_can_be_written_for_another_tenant(
    product_database: dict[str, str], table: str
) -> None:
    """The policy checks what is written as well as what is read."""
    values = {
        "product.inbox": "values ('ten_synth_b', 'c', 1, 1, 1, null, sha256(''), 'stale')",
        "projection_1.merchant": "values ('ten_synth_b', 'c', 'm', 1, 'n', 's')",
    }[table]
    with psycopg.connect(product_database["product_app"]) as conn:
        conn.execute("select set_config('app.tenant_id', 'ten_synth_a', true)")
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(f"insert into {table} {values}".encode())


@pytest.mark.parametrize(
    "statement",
    [
        "delete from product.inbox",
        "update product.ignored_event set position = 1",
        "truncate projection_1.public_item",
        "drop schema projection_1 cascade",
        "create schema projection_9",
        "create table product.mine ()",
        "create table projection_1.mine ()",
        "create view projection_1.seen as select 1",
        "create function product.mine() returns int language sql as 'select 1'",
        "create table public.mine ()",
        "create extension btree_gist",
        "alter role product_app bypassrls",
        "select set_config('row_security', 'off', true), * from product.inbox, pg_authid",
        "alter table product.inbox disable row level security",
        "call product.protect('product.inbox')",
        "set role prw_owner",
    ],
)
async def test_the_servers_role_may_do_no_more_than_it_needs(
    product_database: dict[str, str], statement: str
) -> None:
    """Least privilege: what the applier and the queries never do is not granted."""
    with (
        psycopg.connect(product_database["product_app"]) as conn,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        conn.execute(statement.encode())


@pytest.mark.parametrize(
    ("number", "refused"),
    [
        ("0", errors.InvalidParameterValue),
        ("-1", errors.InvalidParameterValue),
        ("null", errors.InvalidParameterValue),
        ("2147483648", errors.UndefinedFunction),
        ("'1; drop schema product cascade'", errors.InvalidTextRepresentation),
        ("'1'::text", errors.UndefinedFunction),
    ],
)
async def test_a_generation_is_made_by_its_number_alone(
    product_database: dict[str, str], number: str, refused: type[psycopg.Error]
) -> None:
    """The owner's function takes nothing that could become SQL, and nothing below 1."""
    with (
        psycopg.connect(product_database["product_app"]) as conn,
        pytest.raises(refused),
    ):
        conn.execute(f"select product.create_generation({number})".encode())


async def test_what_a_caller_puts_in_the_way_does_not_change_what_is_made(
    filled: Database, product_database: dict[str, str]
) -> None:
    """A search path and temporary functions of the caller's are not the owner's; again is nothing."""
    hostile = (
        "create temp table pg_class (oid oid, relnamespace oid, relkind char)",
        "create function pg_temp.format(text, text) returns text return 'drop schema product cascade'",
        "set search_path = pg_temp, pg_catalog",
        "select product.create_generation(2147483647)",
        "select product.create_generation(1)",
    )
    with psycopg.connect(product_database["product_app"]) as conn:
        for statement in hostile:
            conn.execute(statement.encode())
    unprotected = (
        "select relname from pg_class where relkind = 'r' and not relforcerowsecurity"
        " and relnamespace = 'projection_2147483647'::regnamespace"
    )
    dsn = product_database["superuser"]
    assert looking.rows(dsn, unprotected) == []
    made = "select count(*) from pg_tables where schemaname = 'projection_2147483647'"
    assert looking.rows(dsn, made) == [(len(looking.PROJECTED),)]
    assert _count(product_database["product_app"], "projection_1.public_item", SCOPE.tenant_id) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "update product.generation set status = 'retired'",
        "update product.serving_generation set switched_at = now()",
        "update product.progress set position = 99",
        "update product.following set code = 'X'",
        "update projection_1.public_item set title = 'theirs'",
        "delete from projection_1.public_listing",
        "delete from product.parked",
    ],
)
async def test_another_tenants_generation_cannot_be_touched(
    filled: Database, product_database: dict[str, str], statement: str
) -> None:
    """What is granted reaches the own tenant's rows only."""
    with psycopg.connect(product_database["product_app"]) as conn:
        conn.execute("select set_config('app.tenant_id', %s, true)", (OTHER.tenant_id,))
        assert conn.execute(statement.encode()).rowcount == 0
        conn.execute("select set_config('app.tenant_id', %s, true)", (SCOPE.tenant_id,))
        assert conn.execute(statement.encode()).rowcount > 0
        conn.rollback()


async def test_no_query_answers_with_another_tenants_item(filled: Database) -> None:
    """Every public method of the other tenant's deployment, on the same database."""
    theirs = Catalogue(filled, OTHER)
    live = await open_live(filled, OTHER, 9)
    assert live.progress == 0
    assert (await theirs.list_items(ItemQuery())).items == ()
    assert (await theirs.list_merchants(0, "")).merchants == ()
    assert (await theirs.count()).items == 0
    with pytest.raises(PrwError) as refused:
        await theirs.get_item("itm_1")
    assert refused.value.code is Code.NOT_FOUND


async def test_two_tenants_project_side_by_side(
    filled: Database, product_database: dict[str, str]
) -> None:
    """The same ids, positions and event ids in two tenants never meet."""
    live = await open_live(filled, OTHER, EPOCH)
    before = looking.rows(product_database["superuser"], "table projection_1.public_item")
    theirs = Applier(filled, decode, live.generation)
    applied = await theirs.apply([_moved(delivery) for delivery in deliveries(story())])
    assert applied.progress == 12
    after = looking.rows(product_database["superuser"], "table projection_1.public_item")
    assert [row for row in after if row[0] == SCOPE.tenant_id] == before
    assert len(after) == 2 * len(before)


def _moved(delivery: Delivery) -> Delivery:
    event = delivery.event.replace(SCOPE.tenant_id.encode(), OTHER.tenant_id.encode())
    return Delivery(delivery.position, delivery.committed_at, event)
