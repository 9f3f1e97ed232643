"""Records that arrive in some order, and how their catalogue stands when everything has settled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import psycopg
from psycopg.rows import dict_row

from prw_resolver.identity.service import Identifier
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import SCOPE, TRUSTED, UNTRUSTED, Rooms, record


@dataclass(frozen=True)
class Shown:
    """A listing before it is salted: its name, whether its source is trusted, and what it states."""

    name: str
    trusted: bool
    stated: dict[str, str]


class Way(Enum):
    """When the cases that were woken are identified again."""

    AT_THE_END = 0
    IN_BETWEEN = 1
    AT_ONCE = 2


@dataclass(frozen=True)
class Settled:
    """Which listings are one item, and which open question each other listing has."""

    items: frozenset[frozenset[str]]
    cases: frozenset[tuple[str, str]]


SALTED = ("core:gtin", "core:mpn")


def salted(held: Rooms, shown: Shown, salt: str) -> NormalisedRecord:
    """The record with identifiers of its own, so that many orders may share one catalogue."""
    stated: dict[str, Any] = {
        key.replace(":", "__"): f"{text}-{salt}" if key in SALTED else text
        for key, text in shown.stated.items()
    }
    source = TRUSTED if shown.trusted else UNTRUSTED
    return record(held.vocabulary, f"{shown.name}.{salt}", source_id=source, **stated)


async def arrive(held: Rooms, order: Sequence[Shown], salt: str, way: Way) -> None:
    """Identify the records in this order, and again what they woke, until nothing is left to do."""
    records = [salted(held, shown, salt) for shown in order]
    if way is Way.AT_ONCE:
        await _at_once(held, records)
    else:
        for subject in records:
            await identify(held.identifier, held, subject)
            if way is Way.IN_BETWEEN:
                await drain(held)
    await drain(held)


async def _at_once(held: Rooms, records: Sequence[NormalisedRecord]) -> None:
    """Two identifiers, as two processes would have them, over every other record, and reconsidering meanwhile."""
    identifiers = (held.identifier, Identifier(held.database, held.committer))
    calls: list[Any] = [
        identify(identifiers[number % 2], held, subject) for number, subject in enumerate(records)
    ]
    await asyncio.gather(*calls, *(one.reconsider(SCOPE, held.vocabulary) for one in identifiers))


async def identify(identifier: Identifier, held: Rooms, subject: NormalisedRecord) -> str:
    """Identify one record as a job of its own."""
    job = f"{subject.capture_id}:identify:0"
    return await identifier.identify(subject, held.vocabulary, job_id=job, last=False)


async def drain(held: Rooms) -> None:
    """Reconsider to the fixed point."""
    while await held.identifier.reconsider(SCOPE, held.vocabulary):
        pass


def settled(dsn: str, salt: str) -> Settled:
    """How the listings of that salt stand."""
    with psycopg.connect(dsn, row_factory=dict_row) as conn:
        conn.execute("select set_config('app.tenant_id', %s, false)", (SCOPE.tenant_id,))
        pattern = f"%.{salt}"
        mapped = conn.execute(
            "select item_id, listing_key from resolver.listing_mapping"
            " where status = 'active' and listing_key like %s",
            (pattern,),
        ).fetchall()
        cases = conn.execute(
            "select listing_key, reason from resolver.review_case"
            " where status in ('awaiting_human', 'deferred') and listing_key like %s",
            (pattern,),
        ).fetchall()
    items: dict[str, set[str]] = {}
    for row in mapped:
        items.setdefault(row["item_id"], set()).add(_name(row))
    return Settled(
        frozenset(frozenset(names) for names in items.values()),
        frozenset((_name(row), row["reason"]) for row in cases),
    )


def _name(row: dict[str, Any]) -> str:
    return str(row["listing_key"]).rpartition(".")[0]
