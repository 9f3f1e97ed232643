"""Changes made by hand, for the tests of the stream and of what the database itself holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from prw_base.scope import Scope
from prw_resolver.catalog.acceptance import Held, accept_record, record_evidence
from prw_resolver.stream.model import Action, Actor, ActorKind, Change, Decision, KeyLookup
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import SCOPE, record

RULE = Actor(ActorKind.RULE, "test@1")
QUOTE = {
    "capture_id": "cap_1",
    "part_role": "page",
    "sha256": "0" * 64,
    "attribute": "core:title",
    "quote": "SSD",
    "selector": {"type": "css", "value": "h1"},
    "origin": "adapter",
}
TENANT, CATALOG = SCOPE.tenant_id, SCOPE.catalog_id


def ssd(vocabulary: Vocabulary, name: str, scope: Scope = SCOPE) -> NormalisedRecord:
    """A record whose keys and merchant nobody else has."""
    stated: dict[str, Any] = {"core__gtin": f"G-{name}", "storage__capacity": "1000000000000"}
    return record(vocabulary, name, merchant=f"Shop {name}", scope=scope, **stated)


def introduction(
    vocabulary: Vocabulary,
    name: str,
    *,
    command_id: str | None = None,
    digest: str = "d",
    scope: Scope = SCOPE,
) -> Change:
    """A change that makes an item with its merchant and mapping: three facts."""
    subject = ssd(vocabulary, name, scope)
    facts = accept_record(subject, None, subject.keys, Held(), vocabulary)
    return Change(
        command_id=command_id or f"make:{name}",
        tenant_id=scope.tenant_id,
        catalog_id=scope.catalog_id,
        digest=digest,
        decision=Decision(Action.ACCEPT, RULE, "a test says so", record_evidence(subject)),
        facts=facts,
        lookups=tuple(
            KeyLookup(key.class_id, key.generation, key.identity_hash, None) for key in subject.keys
        ),
        answer={"name": name},
    )


@contextmanager
def app(dsns: dict[str, str], tenant: str = TENANT, role: str = "resolver_app") -> Iterator[Any]:
    """A connection of a server's login that works for the tenant."""
    with psycopg.connect(dsns[role], autocommit=True) as conn:
        conn.execute("select set_config('app.tenant_id', %s, false)", (tenant,))
        yield conn


@contextmanager
def owner(dsns: dict[str, str], tenant: str = TENANT) -> Iterator[Any]:
    """A connection of the tables' owner that works for the tenant: what no server may, and constraints still hold."""
    with app(dsns, tenant, "superuser") as conn:
        conn.execute("set role prw_owner")
        yield conn


def decide(conn: Any, decision_id: str, **other: object) -> None:
    """Insert a decision straight into its table."""
    row = {
        "tenant_id": TENANT,
        "decision_id": decision_id,
        "catalog_id": CATALOG,
        "action": "accept",
        "actor_kind": "rule",
        "actor_id": "test@1",
        "rationale": "a test says so",
        "evidence": Jsonb([QUOTE]),
        "prior_decisions": [],
    } | other
    conn.execute(
        "insert into resolver.decision (tenant_id, decision_id, catalog_id, action, actor_kind, actor_id, rationale,"
        " evidence, prior_decisions, decided_at) values (%(tenant_id)s, %(decision_id)s, %(catalog_id)s, %(action)s,"
        " %(actor_kind)s, %(actor_id)s, %(rationale)s, %(evidence)s, %(prior_decisions)s, clock_timestamp())",
        row,
    )
