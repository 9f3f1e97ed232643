"""The fold of applied events into the projection's tables, set by set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from psycopg.types.json import Jsonb

from prw_base.faults import fault
from prw_base.scope import Scope
from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_product.apply.model import Event, Inventory, Item, Key, Mapping, Merchant, Source
from prw_product.publish.model import Release
from prw_product.publish.service import publish

_SQL = Statements("prw_product.apply", "projection.sql")
_B = TypeVar("_B")
_Rows = Sequence[tuple[int, _B]]


async def project(
    conn: Connection, scope: Scope, applied: Sequence[Event], stale: Sequence[Event]
) -> None:
    """Fold ``applied`` into the tables that the transaction has entered; releases come last.

    Of ``stale`` only the states by revision are kept: a release may name the very revision that a
    newer one has overtaken; and a release that was overtaken has named its mappings all the same.
    Raises psycopg.DataError, IntegrityError or ProgramLimitExceeded for what does not fit.
    """
    by_revision = [*applied, *stale]
    newest = _newest(applied)
    await _put(conn, scope, "put_items", _of(by_revision, Item), _items)
    await _put(conn, scope, "put_mappings", _of(by_revision, Mapping), _mappings)
    fault("apply.mid_projection")
    await _put(conn, scope, "put_merchants", _of(newest, Merchant), _merchants)
    await _put(conn, scope, "put_sources", _of(newest, Source), _sources)
    await _put(conn, scope, "put_inventory", _of(newest, Inventory), _inventory)
    await _put(conn, scope, "put_applied", [(e.revision, e.key) for e in newest], _revisions)
    releases = [release for _, release in _of(newest, Release)]
    newest_at = {release.position for release in releases}
    seen = [release for _, release in _of(by_revision, Release)]
    overtaken = [release for release in seen if release.position not in newest_at]
    await publish(conn, scope, releases, overtaken)


def _newest(applied: Sequence[Event]) -> list[Event]:
    """The last event of each aggregate: a set-based merge may touch a row once only."""
    return list({event.key: event for event in applied}.values())


def _of(events: Sequence[Event], kind: type[_B]) -> list[tuple[int, _B]]:
    return [(event.revision, event.body) for event in events if isinstance(event.body, kind)]


async def _put(
    conn: Connection,
    scope: Scope,
    statement: str,
    rows: _Rows[_B],
    columns: Callable[[_Rows[_B]], dict[str, Any]],
) -> None:
    if rows:
        await _SQL.run(conn, statement, **scope.ids, **columns(rows))


def _items(rows: _Rows[Item]) -> dict[str, Any]:
    return {
        "ids": [item.item_id for _, item in rows],
        "revisions": [revision for revision, _ in rows],
        "classes": [item.class_id for _, item in rows],
        "statuses": [item.status for _, item in rows],
        "successors": [Jsonb(list(item.successors)) for _, item in rows],
        "titles": [item.title for _, item in rows],
        "attributes": [Jsonb([a.as_json() for a in item.attributes]) for _, item in rows],
        "identity_keys": [Jsonb([_key(key) for key in item.keys]) for _, item in rows],
    }


def _key(key: tuple[str, int, str]) -> dict[str, object]:
    rule, generation, identity_hash = key
    return {"rule": rule, "generation": generation, "identity_hash": identity_hash}


def _mappings(rows: _Rows[Mapping]) -> dict[str, Any]:
    return {
        "ids": [mapping.listing_id for _, mapping in rows],
        "revisions": [revision for revision, _ in rows],
        "items": [mapping.item_id for _, mapping in rows],
        "item_revisions": [mapping.item_revision for _, mapping in rows],
        "statuses": [mapping.status for _, mapping in rows],
        "sources": [mapping.source_id for _, mapping in rows],
        "listing_keys": [mapping.listing_key for _, mapping in rows],
        "merchants": [mapping.merchant_id for _, mapping in rows],
        "urls": [mapping.url for _, mapping in rows],
        "titles": [mapping.title for _, mapping in rows],
        "observed": [mapping.observed_at for _, mapping in rows],
    }


def _merchants(rows: _Rows[Merchant]) -> dict[str, Any]:
    return {
        "ids": [merchant.merchant_id for _, merchant in rows],
        "revisions": [revision for revision, _ in rows],
        "names": [merchant.name for _, merchant in rows],
        "sources": [merchant.source_id for _, merchant in rows],
    }


def _sources(rows: _Rows[Source]) -> dict[str, Any]:
    return {
        "ids": [source.source_id for _, source in rows],
        "revisions": [revision for revision, _ in rows],
        "names": [source.name for _, source in rows],
    }


def _inventory(rows: _Rows[Inventory]) -> dict[str, Any]:
    return {
        "ids": [seen.listing_id for _, seen in rows],
        "revisions": [revision for revision, _ in rows],
        "amounts": [seen.price_amount for _, seen in rows],
        "currencies": [seen.price_currency for _, seen in rows],
        "availabilities": [seen.availability for _, seen in rows],
        "observed": [seen.observed_at for _, seen in rows],
    }


def _revisions(rows: _Rows[Key]) -> dict[str, Any]:
    return {
        "types": [key.type.value for _, key in rows],
        "ids": [key.id for _, key in rows],
        "revisions": [revision for revision, _ in rows],
    }
