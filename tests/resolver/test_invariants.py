"""What the database itself holds, whoever writes: direct SQL of the server's login and of the owner tries it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from tests.resolver.catalogue import SCOPE, UNTRUSTED, Rooms, record, rooms
from tests.resolver.writing import QUOTE, app, decide, introduction, owner


@pytest.fixture(autouse=True)
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Rooms]:
    """A catalogue with the items of two listings, a release and an open case."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as opened:
        for name in ("one", "two"):
            await opened.committer.commit(introduction(opened.vocabulary, name))
        offered = record(opened.vocabulary, "three", core__gtin="G-three", offer__price="99.90")
        unknown = record(opened.vocabulary, "m", source_id=UNTRUSTED, core__gtin="G-m")
        for number, subject in enumerate((offered, unknown)):
            await opened.identifier.identify(
                subject, opened.vocabulary, job_id=f"c{number}:identify:0", last=False
            )
        await opened.releases.release_due(SCOPE, opened.vocabulary)
        yield opened


@pytest.fixture
def conn(resolver_database: dict[str, str], held: Rooms) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the owner, which may write every table, to that catalogue."""
    with owner(resolver_database) as connection:
        yield connection


@pytest.fixture
def server(resolver_database: dict[str, str], held: Rooms) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the server's login to that catalogue."""
    with app(resolver_database) as connection:
        yield connection


EVERY_FACT = (
    "catalog_item",
    "merchant",
    "listing_mapping",
    "inventory_observation",
    "release",
    "catalog_revision",
)


@pytest.mark.parametrize("status", ["split", "merged", "retired"])
def test_no_mapping_targets_an_item_that_is_not_active(
    conn: psycopg.Connection[Any], status: str
) -> None:
    """INV-01: the item exists and is active at the mapping's revision of it."""
    successors = [] if status == "retired" else ["itm_next"]
    conn.execute(
        "update resolver.catalog_item set status = %s, successors = %s", (status, successors)
    )
    with pytest.raises(psycopg.Error, match="ITEM_NOT_ACTIVE"):
        conn.execute("update resolver.listing_mapping set title = 'again'")


@pytest.mark.parametrize("change", ["item_revision = 7", "item_id = 'itm_nowhere'"])
def test_no_mapping_targets_a_revision_or_an_item_that_is_not_there(
    conn: psycopg.Connection[Any], change: LiteralString
) -> None:
    """INV-01."""
    with pytest.raises(psycopg.Error, match="ITEM_NOT_ACTIVE"):
        _change(conn, "listing_mapping", change)


def test_a_retracted_mapping_needs_no_active_item(conn: psycopg.Connection[Any]) -> None:
    """INV-01 speaks of what is active: a listing of a retired item can still be retracted."""
    conn.execute("update resolver.catalog_item set status = 'retired'")
    done = conn.execute("update resolver.listing_mapping set status = 'retracted'")
    assert done.rowcount == 3


def test_one_active_item_owns_a_key(conn: psycopg.Connection[Any]) -> None:
    """INV-02: a second owner is refused while ready or active; candidates may collide."""
    copy = (
        "insert into resolver.catalog_item_key (tenant_id, catalog_id, class_id, generation, identity_hash, item_id,"
        " status, rule, canonical, decision_id)"
        " select k.tenant_id, k.catalog_id, k.class_id, k.generation, k.identity_hash, i.item_id, %s, k.rule,"
        " k.canonical, k.decision_id from resolver.catalog_item_key k, resolver.catalog_item i"
        " where i.item_id <> k.item_id limit 1"
    )
    for status in ("ready", "active"):
        with pytest.raises(errors.UniqueViolation, match="catalog_item_key_owner"):
            conn.execute(copy, (status,))
    conn.execute(copy, ("candidate",))
    with pytest.raises(errors.UniqueViolation):
        conn.execute("update resolver.catalog_item_key set status = 'active'")


def test_a_case_moves_only_from_the_revision_that_was_seen(conn: psycopg.Connection[Any]) -> None:
    """INV-04."""
    case = conn.execute("select case_id, revision from resolver.review_case").fetchone()
    assert case is not None
    move = "select resolver.review_apply_case('ten_synth_a', 'cat_primary', %s)"
    stale = {"case_id": case[0], "expected_revision": case[1] + 1, "status": "decided"}
    with pytest.raises(psycopg.Error, match="STALE_CASE_REVISION"):
        conn.execute(move, (Jsonb(stale),))
    conn.execute(move, (Jsonb(stale | {"expected_revision": case[1]}),))
    with pytest.raises(psycopg.Error, match="STALE_CASE_REVISION"):
        conn.execute(move, (Jsonb(stale | {"expected_revision": case[1]}),))


def test_every_fact_names_a_decision_that_exists(superuser: psycopg.Connection[Any]) -> None:
    """INV-05: not null, and a foreign key; the owner himself cannot get round it."""
    for table in (*EVERY_FACT, "catalog_item_attribute", "catalog_item_key"):
        with pytest.raises(errors.ForeignKeyViolation):
            _change(superuser, table, "decision_id = 'dec_nowhere'")
        with pytest.raises(errors.NotNullViolation):
            _change(superuser, table, "decision_id = null")


@pytest.mark.parametrize("evidence", ["'[]'", "null", "'null'", "'{}'"])
def test_no_fact_decision_or_case_is_without_evidence(
    superuser: psycopg.Connection[Any], evidence: LiteralString
) -> None:
    """INV-05: evidence is a list that is not empty."""
    refused = (errors.CheckViolation, errors.NotNullViolation, errors.DataError)
    for table in (*EVERY_FACT, "decision", "review_case"):
        with pytest.raises(refused):
            _change(superuser, table, "evidence = " + evidence)


def _change(conn: psycopg.Connection[Any], table: str, assignment: LiteralString) -> None:
    statement = sql.SQL("update resolver.{} set {}")
    done = conn.execute(statement.format(sql.Identifier(table), sql.SQL(assignment)))
    assert done.rowcount > 0, "there was nothing to change"


FORBIDDEN: tuple[LiteralString, ...] = (
    "update resolver.decision set rationale = 'rewritten'",
    "delete from resolver.decision",
    "update resolver.outbox set event = 'x'",
    "update resolver.outbox set published_at = null",
    "delete from resolver.outbox",
    "update resolver.catalog_revision set state = '{}'",
    "delete from resolver.catalog_revision",
    "update resolver.stream_command set answer = '{}'",
    "delete from resolver.stream_command",
    "delete from resolver.catalog_item",
    "update resolver.catalog_item set class_id = 'thing'",
    "update resolver.catalog_item set item_id = 'itm_other'",
    "delete from resolver.catalog_item_key",
    "delete from resolver.catalog_item_attribute",
    "delete from resolver.listing_mapping",
    "delete from resolver.inventory_observation",
    "delete from resolver.merchant",
    "delete from resolver.release",
    "delete from resolver.review_case",
    "delete from resolver.record_outcome",
    "delete from resolver.stream_cursor",
    "truncate resolver.decision",
    "alter table resolver.decision disable row level security",
    "drop trigger listing_mapping_targets_active_item on resolver.listing_mapping",
    "set session_replication_role = replica",
    "set role prw_owner",
)


def test_the_server_may_not_rewrite_history(server: psycopg.Connection[Any]) -> None:
    """INV-08: decisions and events stay, nothing accepted is deleted, and no rule can be switched off."""
    for statement in FORBIDDEN:
        with pytest.raises(errors.InsufficientPrivilege):
            server.execute(statement)


WRITTEN_BY_COMMANDS = (
    *EVERY_FACT,
    "catalog_item_attribute",
    "catalog_item_key",
    "release_due",
    "review_case",
    "review_case_key",
    "review_wake",
    "decision",
    "record_outcome",
    "outbox",
    "stream_command",
)


@pytest.mark.parametrize("table", WRITTEN_BY_COMMANDS)
def test_the_server_writes_accepted_state_by_commands_only(
    server: psycopg.Connection[Any], table: str
) -> None:
    """INV-06: no fact without its event, since the server's login has no other way to a fact than `stream_commit`."""
    name = sql.Identifier(table)
    for statement in (
        "insert into resolver.{0} table resolver.{0}",
        "update resolver.{0} set tenant_id = tenant_id",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            server.execute(sql.SQL(statement).format(name))


def test_a_command_stays_within_the_tenant_of_its_transaction(
    resolver_database: dict[str, str], held: Rooms
) -> None:
    """Tenants: the one writer has its owner's rights, and row-level security binds the owner as well."""
    commit = "select resolver.stream_commit('ten_synth_a', 'cat_primary', 1, '[]')"
    for tenant in ("ten_synth_b", ""):
        with app(resolver_database, tenant) as other, pytest.raises(psycopg.Error, match="FENCED"):
            other.execute(commit)
    with app(resolver_database) as own:
        assert own.execute(commit).fetchone() == ([],)


@pytest.mark.parametrize("kind", ["model", "machine", ""])
def test_no_decisions_actor_is_a_model(conn: psycopg.Connection[Any], kind: str) -> None:
    """No model's word is a fact: a decision is a person's or a rule's."""
    with pytest.raises(errors.CheckViolation):
        decide(conn, "dec_x", actor_kind=kind)


@pytest.mark.parametrize("origin", ["model", "llm", "", None, 5])
def test_a_rules_decision_rests_on_adapters_claims_only(
    conn: psycopg.Connection[Any], origin: object
) -> None:
    """No model's word is a fact: one claim of another origin refuses a rule's decision; a person may decide on it."""
    doubtful = Jsonb([QUOTE, QUOTE | {"origin": origin}])
    with pytest.raises(errors.CheckViolation, match="decision_rule_rests_on_adapters"):
        decide(conn, "dec_x", evidence=doubtful)
    nameless = {key: held for key, held in QUOTE.items() if key != "origin"}
    with pytest.raises(errors.CheckViolation, match="decision_rule_rests_on_adapters"):
        decide(conn, "dec_x", evidence=Jsonb([nameless]))
    decide(conn, "dec_x", evidence=doubtful, actor_kind="person", actor_id="anna")
    decide(conn, "dec_y", evidence=doubtful, action="approve", prior_decisions=["dec_x"])
    with pytest.raises(errors.CheckViolation):
        decide(conn, "dec_z", evidence=doubtful, action="approve")


def test_a_decision_rests_on_former_ones_that_exist(conn: psycopg.Connection[Any]) -> None:
    """INV-05: a rule cannot publish on the word of a decision that nobody made."""
    decide(conn, "dec_x")
    for prior in (["dec_nowhere"], ["dec_x", "dec_nowhere"], ["dec_y"]):
        with pytest.raises(errors.ForeignKeyViolation, match="dec_y rests on"):
            decide(conn, "dec_y", action="approve", prior_decisions=prior)
    decide(conn, "dec_y", action="approve", prior_decisions=["dec_x"])


def test_a_change_and_its_events_are_one(server: psycopg.Connection[Any]) -> None:
    """INV-06: what is rolled back leaves neither fact nor position; what is committed has both."""
    count = "select (select count(*) from resolver.outbox), (select count(*) from resolver.catalog_revision)"
    before = server.execute(count).fetchone()
    assert before is not None
    assert before[0] == before[1] > 0
    broken = {"command_id": "c", "digest": "d", "facts": [{"type": "catalog_item", "id": "itm_1"}]}
    with pytest.raises(psycopg.Error):
        server.execute(
            "select resolver.stream_commit('ten_synth_a', 'cat_primary', 1, %s)", (Jsonb([broken]),)
        )
    assert server.execute(count).fetchone() == before


ATTRIBUTE = (
    "insert into resolver.catalog_item_attribute (tenant_id, catalog_id, item_id, attribute_key, definition_version,"
    " value, unit, basis, decision_id)"
    " select tenant_id, catalog_id, item_id, %s, %s, 'x', '', 'stated', decision_id from resolver.catalog_item limit 1"
)


def test_an_attribute_needs_a_published_definition(conn: psycopg.Connection[Any]) -> None:
    """INV-07: a foreign key to the definition and its version."""
    for key, version in (("core:colour", 1), ("core:sku", 2)):
        with pytest.raises(psycopg.Error):
            conn.execute(ATTRIBUTE, (key, version))
    conn.execute(ATTRIBUTE, ("core:sku", 1))


def test_an_attribute_applies_to_the_items_class_or_one_above(
    conn: psycopg.Connection[Any],
) -> None:
    """INV-07: `storage:interface` belongs to drives, which SSDs inherit; not to a thing of any kind."""
    conn.execute(ATTRIBUTE, ("storage:interface", 1))
    conn.execute(
        "insert into resolver.catalog_item (tenant_id, catalog_id, item_id, class_id, status, revision, title,"
        " decision_id, evidence) select tenant_id, catalog_id, 'itm_thing', 'thing', 'active', 1, 'thing', decision_id,"
        " evidence from resolver.catalog_item limit 1"
    )
    move = (
        "update resolver.catalog_item_attribute set item_id = 'itm_thing' where attribute_key = %s"
    )
    with pytest.raises(errors.CheckViolation, match="INV-07"):
        conn.execute(move, ("storage:interface",))


def test_an_observation_is_never_replaced_by_an_older_one(conn: psycopg.Connection[Any]) -> None:
    """Replay rule 8, for whoever writes the table."""
    conn.execute(
        "insert into resolver.inventory_observation (tenant_id, catalog_id, listing_id, revision, availability,"
        " observed_at, decision_id, evidence) select tenant_id, catalog_id, listing_id, 1, 'in_stock',"
        " clock_timestamp(), decision_id, evidence from resolver.listing_mapping limit 1"
    )
    with pytest.raises(psycopg.Error, match="STALE_FACT_REVISION"):
        conn.execute(
            "update resolver.inventory_observation set observed_at = observed_at - interval '1 second'"
        )
