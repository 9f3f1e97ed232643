-- name: find_serving
-- The generation that serves a catalogue.
select generation, history_epoch
from product.serving_generation
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s;

-- name: enter_serving
-- Read the pointer and make its generation's tables the ones of this transaction, at once.
select generation, history_epoch,
    set_config('search_path', 'projection_' || generation || ', pg_catalog, pg_temp', true)
from product.serving_generation
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s;

-- name: enter_generation
-- Make a generation's tables the ones of this transaction.
select set_config('search_path', 'projection_' || %(generation)s::integer || ', pg_catalog, pg_temp', true);

-- name: create_generation
-- Make the tables of a generation where they are missing.
select product.create_generation(%(generation)s);

-- name: put_generation
-- Note a generation of a catalogue; does nothing where it is noted.
insert into product.generation (tenant_id, catalog_id, generation, history_epoch, status)
values (%(tenant_id)s, %(catalog_id)s, %(generation)s, %(history_epoch)s, 'live')
on conflict (tenant_id, catalog_id, generation) do nothing;

-- name: put_serving
-- Point to a generation where the catalogue has no pointer; returns nothing where it has one.
insert into product.serving_generation (tenant_id, catalog_id, generation, history_epoch)
values (%(tenant_id)s, %(catalog_id)s, %(generation)s, %(history_epoch)s)
on conflict (tenant_id, catalog_id) do nothing
returning generation;

-- name: put_public_items
-- The release pointer of each item, with the fields that it makes public. A second release of an
-- item breaks the primary key, and one that has changed its item writes no row.
insert into public_item (tenant_id, catalog_id, item_id, release_id, class_id, title, attributes,
    published_revision, publication_revision, release_position)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(items)s::text[], %(releases)s::text[], %(classes)s::text[], %(titles)s::text[],
    %(attributes)s::jsonb[], %(item_revisions)s::bigint[], %(publications)s::bigint[],
    %(positions)s::bigint[]) as given
on conflict (tenant_id, catalog_id, release_id) do update set
    class_id = excluded.class_id, title = excluded.title,
    attributes = excluded.attributes, published_revision = excluded.published_revision,
    publication_revision = excluded.publication_revision,
    release_position = excluded.release_position
where public_item.item_id = excluded.item_id;

-- name: delete_public_attributes
-- Forget the filterable values of items that are released anew.
delete from public_attribute
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and item_id = any(%(items)s);

-- name: put_public_attributes
-- The values by which items may be found.
insert into public_attribute (tenant_id, catalog_id, item_id, attribute_key, value, unit)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(items)s::text[], %(keys)s::text[], %(values)s::text[], %(units)s::text[]) as given;

-- name: delete_released_listings
-- Forget which listings the former releases of these items named; returns them.
delete from released_listing
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and item_id = any(%(items)s)
returning listing_id;

-- name: put_released_listings
-- The listings that the newest releases name.
insert into released_listing (tenant_id, catalog_id, item_id, listing_id, mapping_revision,
    release_position)
select %(tenant_id)s, %(catalog_id)s, given.*
from unnest(%(items)s::text[], %(listings)s::text[], %(revisions)s::bigint[],
    %(positions)s::bigint[]) as given;

-- name: raise_released_mappings
-- Note the newest mapping revision at which a release has named each listing.
insert into released_mapping (tenant_id, catalog_id, listing_id, mapping_revision)
select %(tenant_id)s, %(catalog_id)s, given.listing_id, max(given.revision)
from unnest(%(listings)s::text[], %(revisions)s::bigint[]) as given (listing_id, revision)
group by given.listing_id
on conflict (tenant_id, catalog_id, listing_id) do update set
    mapping_revision = excluded.mapping_revision
where excluded.mapping_revision > released_mapping.mapping_revision;

-- name: delete_public_listings
-- Take listings from whoever owns them publicly.
delete from public_listing
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and listing_id = any(%(listings)s);

-- name: assign_public_listings
-- Give each listing to the release that names it at the greatest mapping revision that was ever
-- released, the later one of two equals, with the mapping's state at that very revision. A function
-- of the processed releases alone, so that the order of arrival changes nothing.
insert into public_listing (tenant_id, catalog_id, listing_id, item_id, mapping_revision,
    merchant_id, url, title)
select %(tenant_id)s, %(catalog_id)s, mapping.listing_id, owner.item_id, mapping.revision,
    mapping.merchant_id, mapping.url, mapping.title
from (
    select distinct on (listing_id) listing_id, item_id, mapping_revision
    from released_listing
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
        and listing_id = any(%(listings)s)
    order by listing_id, mapping_revision desc, release_position desc
) as owner
join released_mapping as newest
    on newest.tenant_id = %(tenant_id)s and newest.catalog_id = %(catalog_id)s
    and newest.listing_id = owner.listing_id
    and newest.mapping_revision = owner.mapping_revision
join mapping_revision as mapping
    on mapping.tenant_id = %(tenant_id)s and mapping.catalog_id = %(catalog_id)s
    and mapping.listing_id = owner.listing_id and mapping.revision = owner.mapping_revision
where mapping.status = 'active' and mapping.item_id = owner.item_id;
