-- name: list_items
-- Released items by id with their offers; the transaction has entered the serving generation.
-- An empty class asks for all; each numbered filter must be met by one of its spellings.
select item.item_id, item.class_id, item.title, item.attributes, item.published_revision,
    item.publication_revision, coalesce((
        select jsonb_agg(to_jsonb(offer) order by offer.merchant_name, offer.listing_id)
        from public_offer as offer
        where offer.tenant_id = %(tenant_id)s and offer.catalog_id = %(catalog_id)s
            and offer.item_id = item.item_id
    ), '[]'::jsonb) as offers
from public_item as item
where item.tenant_id = %(tenant_id)s and item.catalog_id = %(catalog_id)s
    and item.item_id > %(after)s
    and (%(class_id)s = '' or item.class_id = %(class_id)s)
    and (%(filters)s = 0 or item.item_id in (
        select held.item_id
        from unnest(%(numbers)s::integer[], %(keys)s::text[], %(values)s::text[],
            %(units)s::text[]) as wanted (number, attribute_key, value, unit)
        join public_attribute as held
            on held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
            and held.attribute_key = wanted.attribute_key and held.value = wanted.value
            and (wanted.unit is null or held.unit = wanted.unit)
        group by held.item_id
        having count(distinct wanted.number) = %(filters)s
    ))
order by item.item_id
limit %(limit)s;

-- name: find_item
-- One released item with its offers; the transaction has entered the serving generation.
select item.item_id, item.class_id, item.title, item.attributes, item.published_revision,
    item.publication_revision, coalesce((
        select jsonb_agg(to_jsonb(offer) order by offer.merchant_name, offer.listing_id)
        from public_offer as offer
        where offer.tenant_id = %(tenant_id)s and offer.catalog_id = %(catalog_id)s
            and offer.item_id = item.item_id
    ), '[]'::jsonb) as offers
from public_item as item
where item.tenant_id = %(tenant_id)s and item.catalog_id = %(catalog_id)s
    and item.item_id = %(item_id)s;

-- name: list_merchants
-- Merchants that have a released offer, by id.
select merchant.merchant_id, merchant.name
from merchant
where merchant.tenant_id = %(tenant_id)s and merchant.catalog_id = %(catalog_id)s
    and merchant.merchant_id > %(after)s
    and exists (
        select from public_listing as listing
        where listing.tenant_id = %(tenant_id)s and listing.catalog_id = %(catalog_id)s
            and listing.merchant_id = merchant.merchant_id
    )
order by merchant.merchant_id
limit %(limit)s;

-- name: count_public
-- How much is public, in one row.
select
    (select count(*) from public_item
        where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s) as items,
    (select count(*) from public_listing
        where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s) as listings;
