-- name: standing
-- How far the product has followed a stream, and what holds it.
select
    coalesce((select s.generation from product.serving_generation as s
              where s.tenant_id = %(tenant)s and s.catalog_id = %(catalog)s), 0) as generation,
    coalesce((select p.position from product.progress as p
              join product.serving_generation as s
                on s.tenant_id = p.tenant_id and s.catalog_id = p.catalog_id and s.generation = p.generation
               and s.history_epoch = p.history_epoch
              where p.tenant_id = %(tenant)s and p.catalog_id = %(catalog)s), 0) as progress,
    (select count(*) from product.parked as p
     where p.tenant_id = %(tenant)s and p.catalog_id = %(catalog)s) as parked,
    array(select 'position ' || d.position || ': ' || d.code || ': ' || d.message from product.dead_letter as d
          where d.tenant_id = %(tenant)s and d.catalog_id = %(catalog)s and d.resolved_at is null
          order by d.position) as dead_letters;

-- name: inbox_gaps
-- How many positions up to the cursor never came in.
select count(*) as gaps from generate_series(1, %(position)s::bigint) as p
where not exists (
    select from product.inbox as i
    where i.tenant_id = %(tenant)s and i.catalog_id = %(catalog)s and i.history_epoch = %(history_epoch)s
      and i.generation = %(generation)s and i.position = p
);

-- name: public_items
-- How many items of one generation's projection are public.
select count(*) as items from {projection}.public_item as i
where i.tenant_id = %(tenant)s and i.catalog_id = %(catalog)s;

-- name: public_listings
-- Under which item each released listing of one generation's projection is shown.
select l.listing_id, l.item_id from {projection}.public_listing as l
where l.tenant_id = %(tenant)s and l.catalog_id = %(catalog)s;
