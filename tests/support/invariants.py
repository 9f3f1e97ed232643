"""What must hold of every stream after any fault: state.md, "Invariants to assert after every fault".

Each takes the DSN of a role that sees every tenant's rows.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

_I1 = """
select c.tenant_id, c.catalog_id, c.history_epoch, c.position, r.pruned_through,
       coalesce(o.held, 0) as held, o.first, o.last
  from resolver.stream_cursor c
  join resolver.stream_retention r using (tenant_id, catalog_id, history_epoch)
  left join (select tenant_id, catalog_id, history_epoch, count(*) as held, min(position) as first,
                    max(position) as last
               from resolver.outbox group by 1, 2, 3) o using (tenant_id, catalog_id, history_epoch)
 where coalesce(o.held, 0) <> c.position - r.pruned_through
    or (o.held > 0 and (o.first <> r.pruned_through + 1 or o.last <> c.position))
"""

_I2 = """
select coalesce(o.tenant_id, f.tenant_id) as tenant_id, coalesce(o.aggregate_type, f.aggregate_type) as type,
       coalesce(o.aggregate_id, f.aggregate_id) as id, coalesce(o.revision, f.revision) as revision,
       o.position is null as without_event, f.state is null as without_fact
  from resolver.outbox o
  full join resolver.catalog_revision f
    on f.tenant_id = o.tenant_id and f.catalog_id = o.catalog_id and f.aggregate_type = o.aggregate_type
   and f.aggregate_id = o.aggregate_id and f.revision = o.revision
 where o.position is null or f.state is null
"""

_I2_HEADS = """
with head as (
    select tenant_id, catalog_id, 'catalog_item' as type, item_id as id, revision, decision_id
      from resolver.catalog_item
    union all
    select tenant_id, catalog_id, 'merchant', merchant_id, revision, decision_id from resolver.merchant
    union all
    select tenant_id, catalog_id, 'listing_mapping', listing_id, revision, decision_id
      from resolver.listing_mapping
    union all
    select tenant_id, catalog_id, 'inventory_observation', listing_id, revision, decision_id
      from resolver.inventory_observation
    union all
    select tenant_id, catalog_id, 'release', release_id, revision, decision_id from resolver.release
), newest as (
    select tenant_id, catalog_id, aggregate_type as type, aggregate_id as id, max(revision) as revision,
           count(*) as held
      from resolver.catalog_revision group by 1, 2, 3, 4
)
select coalesce(h.id, n.id) as id, h.revision, n.revision as newest, n.held
  from head h
  full join newest n using (tenant_id, catalog_id, type, id)
 where h.revision is distinct from n.revision or n.held is distinct from n.revision
"""

_REPEATED = """
select tenant_id, event_id, count(*) from resolver.outbox group by 1, 2 having count(*) > 1
"""


def assert_positions_have_no_gap(dsn: str) -> None:
    """I1: the retained outbox rows are exactly pruned-through+1 … cursor."""
    assert _rows(dsn, _I1) == []


def assert_facts_and_events_pair(dsn: str) -> None:
    """I2: every accepted fact revision has its outbox row and the other way round; revisions are 1…n.

    For streams of which nothing is pruned.
    """
    assert _rows(dsn, _I2) == []
    assert _rows(dsn, _I2_HEADS) == []
    assert _rows(dsn, _REPEATED) == []


def assert_stream_holds(dsn: str) -> None:
    """I1 and I2."""
    assert_positions_have_no_gap(dsn)
    assert_facts_and_events_pair(dsn)


def _rows(dsn: str, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(dsn, row_factory=dict_row) as conn:
        return conn.execute(query).fetchall()
