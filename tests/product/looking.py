"""What a test asks the product's database, as its superuser, and the comparison of two databases."""

from __future__ import annotations

from typing import Any

import psycopg

PROJECTED = (
    "applied_revision",
    "item_revision",
    "mapping_revision",
    "merchant",
    "source",
    "inventory",
    "public_item",
    "public_attribute",
    "released_listing",
    "released_mapping",
    "public_listing",
)
GUARDED = (
    *(f"projection_1.{table}" for table in PROJECTED),
    *(
        f"product.{table}"
        for table in (
            "following",
            "generation",
            "serving_generation",
            "progress",
            "inbox",
            "parked",
            "parked_need",
            "dead_letter",
            "ignored_event",
            "rebuild",
        )
    ),
)


def rows(dsn: str, query: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with psycopg.connect(dsn) as conn:
        return conn.execute(query.encode(), values).fetchall()


def projection(dsn: str, generation: int = 1) -> dict[str, list[tuple[Any, ...]]]:
    """All that is projected in a generation, in an order of its own."""
    place = f"projection_{generation}"
    return {table: sorted(rows(dsn, f"table {place}.{table}"), key=repr) for table in PROJECTED}


def outcomes(dsn: str) -> dict[int, str]:
    """What became of each position."""
    return dict(rows(dsn, "select position, outcome from product.inbox order by position"))


def progress(dsn: str) -> int:
    """The durable progress; 0 before it has begun."""
    found = rows(dsn, "select position from product.progress")
    return int(found[0][0]) if found else 0


def parked(dsn: str) -> list[int]:
    """Positions that wait."""
    return [row[0] for row in rows(dsn, "select position from product.parked order by position")]


def dead_letters(dsn: str) -> list[tuple[Any, ...]]:
    """Position and code of what is refused and not resolved."""
    query = "select position, code from product.dead_letter where resolved_at is null order by 1, 2"
    return rows(dsn, query)


def check_invariants(dsn: str) -> None:
    """I3 and I8: every position up to progress has a terminal outcome, and parked rows match."""
    held = outcomes(dsn)
    reached = progress(dsn)
    assert {held.get(at) for at in range(1, reached + 1)} <= {"applied", "stale", "duplicate"}
    assert held.get(reached + 1) not in {"applied", "stale", "duplicate"}
    assert parked(dsn) == [at for at, outcome in held.items() if outcome == "parked"]
