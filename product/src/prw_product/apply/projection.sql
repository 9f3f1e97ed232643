-- name: put_applied
-- The newest applied revision of each aggregate.
insert into applied_revision (tenant_id, catalog_id, aggregate_type, aggregate_id, revision)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(types)s::text[], %(ids)s::text[], %(revisions)s::bigint[]) as given
on conflict (tenant_id, catalog_id, aggregate_type, aggregate_id) do update set
    revision = excluded.revision
where excluded.revision > applied_revision.revision;

-- name: put_items
-- Items' states by revision; a revision's state never changes.
insert into item_revision (tenant_id, catalog_id, item_id, revision, class_id, status, successors,
    title, attributes, identity_keys)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(ids)s::text[], %(revisions)s::bigint[], %(classes)s::text[], %(statuses)s::text[],
    %(successors)s::jsonb[], %(titles)s::text[], %(attributes)s::jsonb[],
    %(identity_keys)s::jsonb[]) as given
on conflict (tenant_id, catalog_id, item_id, revision) do nothing;

-- name: put_mappings
-- Mappings' states by revision; a revision's state never changes.
insert into mapping_revision (tenant_id, catalog_id, listing_id, revision, item_id, item_revision,
    status, source_id, listing_key, merchant_id, url, title, observed_at)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(ids)s::text[], %(revisions)s::bigint[], %(items)s::text[],
    %(item_revisions)s::bigint[], %(statuses)s::text[], %(sources)s::text[],
    %(listing_keys)s::text[], %(merchants)s::text[], %(urls)s::text[], %(titles)s::text[],
    %(observed)s::timestamptz[]) as given
on conflict (tenant_id, catalog_id, listing_id, revision) do nothing;

-- name: put_merchants
-- Merchants at their newest revision.
insert into merchant (tenant_id, catalog_id, merchant_id, revision, name, source_id)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(ids)s::text[], %(revisions)s::bigint[], %(names)s::text[],
    %(sources)s::text[]) as given
on conflict (tenant_id, catalog_id, merchant_id) do update set
    revision = excluded.revision, name = excluded.name, source_id = excluded.source_id
where excluded.revision > merchant.revision;

-- name: put_sources
-- Sources at their newest revision.
insert into source (tenant_id, catalog_id, source_id, revision, name)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(ids)s::text[], %(revisions)s::bigint[], %(names)s::text[]) as given
on conflict (tenant_id, catalog_id, source_id) do update set
    revision = excluded.revision, name = excluded.name
where excluded.revision > source.revision;

-- name: put_inventory
-- Price and availability at their newest revision.
insert into inventory (tenant_id, catalog_id, listing_id, revision, price_amount, price_currency,
    availability, observed_at)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(ids)s::text[], %(revisions)s::bigint[], %(amounts)s::numeric[],
    %(currencies)s::text[], %(availabilities)s::text[], %(observed)s::timestamptz[]) as given
on conflict (tenant_id, catalog_id, listing_id) do update set
    revision = excluded.revision, price_amount = excluded.price_amount,
    price_currency = excluded.price_currency, availability = excluded.availability,
    observed_at = excluded.observed_at
where excluded.revision > inventory.revision;
