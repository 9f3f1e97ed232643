"""Accepted state in bulk: a few facts that were really committed, copied under other ids."""

from __future__ import annotations

import psycopg

ROWS_EACH = 10
"""Rows of an export for one article: four aggregates, their four states, and two of its release."""

_COPIES = {
    "catalog_item": "jsonb_build_object('item_id', 'itm_' || n)",
    "listing_mapping": "jsonb_build_object('listing_id', 'lst_' || n, 'item_id', 'itm_' || n, 'item_revision', 1)",
    "inventory_observation": "jsonb_build_object('listing_id', 'lst_' || n)",
    "release": "jsonb_build_object('release_id', 'rel_' || n, 'item_id', 'itm_' || n, 'item_revision', 1,"
    " 'publication_revision', 1, 'listings', jsonb_build_array(jsonb_build_object("
    "'listing_id', 'lst_' || n, 'mapping_revision', 1)))",
}
_PREFIXES = {
    "catalog_item": "itm_",
    "listing_mapping": "lst_",
    "inventory_observation": "lst_",
    "release": "rel_",
}


def copy_facts(dsn: str, articles: int) -> None:
    """Let there be so many more articles, each with its listing, price and release, at position 1."""
    with psycopg.connect(dsn) as conn:
        for kind, changed in _COPIES.items():
            conn.execute(
                f"""
                insert into resolver.catalog_revision (tenant_id, catalog_id, aggregate_type, aggregate_id, revision,
                    decision_id, evidence, state, recorded_at, history_epoch, position)
                select f.tenant_id, f.catalog_id, f.aggregate_type, '{_PREFIXES[kind]}' || n, 1, f.decision_id,
                    f.evidence, f.state || {changed}, f.recorded_at, f.history_epoch, 1
                from (select * from resolver.catalog_revision where aggregate_type = '{kind}'
                      order by revision desc limit 1) as f
                cross join generate_series(1, {articles}) as n
                """.encode()  # noqa: S608 - numbers and names of ours
            )
        conn.execute("analyze resolver.catalog_revision")
