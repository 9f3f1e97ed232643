"""What must hold of a walk at rest, whatever happened to it on the way (state.md, "Invariants to assert")."""

from __future__ import annotations

from typing import Any

import psycopg

from prw_examples.demo.collector import spooled
from tests.support import invariants
from tests.support.walk import Walk

_HEADS = "select aggregate_type, aggregate_id, max(revision) from resolver.catalog_revision group by 1, 2"
_APPLIED = "select aggregate_type, aggregate_id, revision from projection_1.applied_revision"
_UNPROCESSED = (
    "select i.position, i.outcome from product.inbox i"
    " where i.outcome not in ('applied', 'stale', 'duplicate')"
)
_PROGRESS = "select position from product.progress"
_REPORTED = "select reported_position from resolver.stream_consumer"
_BYTES_TWICE = (
    "select tenant_id, source_id, native_record_id, captured_at from resolver.capture"
    " group by 1, 2, 3, 4 having count(*) > 1"
)


async def assert_sound(walk: Walk) -> None:
    """I1, I2, I3, I6 and I8 hold, nothing is there twice, and what was kept has been received.

    For I8 the projection's newest revision of every aggregate is the catalogue's.
    """
    resolver, product = walk.resolver_dsns["superuser"], walk.product_dsns["superuser"]
    invariants.assert_stream_holds(resolver)
    figures = await walk.figures()
    assert figures.faults == {}
    assert figures.submitted == figures.kept == spooled(walk.layout).kept
    assert _rows(resolver, _BYTES_TWICE) == []
    assert _rows(product, _UNPROCESSED) == []
    assert sorted(_rows(product, _APPLIED)) == sorted(_rows(resolver, _HEADS))
    ((progress,),) = _rows(product, _PROGRESS)
    assert progress == figures.positions
    assert all(reported <= progress for (reported,) in _rows(resolver, _REPORTED))


def _rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as conn:
        return conn.execute(query.encode()).fetchall()
