-- name: take_turn
-- Take the one turn of rebuilding a catalogue, for as long as this connection lives; false where another has it.
select pg_try_advisory_lock(hashtext('prw_product.rebuild'), hashtext(%(tenant_id)s || ' ' || %(catalog_id)s)) as taken;

-- name: give_turn
-- Give the turn back.
select pg_advisory_unlock(hashtext('prw_product.rebuild'), hashtext(%(tenant_id)s || ' ' || %(catalog_id)s));

-- name: make_shadow
-- Make the tables of a generation that is loaded.
select product.make_shadow() as number;

-- name: put_generation
-- Note a shadow generation.
insert into product.generation (tenant_id, catalog_id, generation, history_epoch, status)
values (%(tenant_id)s, %(catalog_id)s, %(generation)s, %(history_epoch)s, 'shadow');

-- name: put_progress
-- A shadow's progress begins at the position of its export, and so does its inbox.
insert into product.progress (tenant_id, catalog_id, history_epoch, generation, position, inbox_floor)
values (%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(generation)s, %(position)s, %(position)s);

-- name: put_rebuild
-- Note that a rebuild begins.
insert into product.rebuild (tenant_id, catalog_id, generation, history_epoch, export_id, position, phase)
values (%(tenant_id)s, %(catalog_id)s, %(generation)s, %(history_epoch)s, %(export_id)s, %(position)s, 'loading');

-- name: tell_rebuild
-- Note how far a rebuild is.
update product.rebuild
set phase = %(phase)s, message = %(message)s, told_at = clock_timestamp(),
    served_position = coalesce(%(served_position)s, served_position)
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and generation = %(generation)s;

-- name: last_rebuild
-- The newest rebuild of a catalogue.
select generation, history_epoch, phase, position, served_position, message, started_at, told_at
from product.rebuild
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
order by started_at desc, generation desc
limit 1;

-- name: unserved
-- Shadows that nobody builds any more; the turn is this connection's.
select generation, history_epoch from product.generation
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and status = 'shadow'
order by generation;

-- name: retired
-- Retired generations that still hold something.
select held.generation, held.history_epoch
from product.generation as held
join product.progress as progress
    on progress.tenant_id = held.tenant_id and progress.catalog_id = held.catalog_id
    and progress.generation = held.generation and progress.history_epoch = held.history_epoch
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s and held.status = 'retired'
order by held.generation;

-- name: retire
-- Let a generation be retired.
update product.generation set status = 'retired'
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and generation = %(generation)s;

-- name: give_up_shadow
-- Let a shadow be retired; one that serves meanwhile stays as it is.
update product.generation set status = 'retired'
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and generation = %(generation)s
    and status = 'shadow';

-- name: drop_generation
-- Take away what a retired generation holds.
select product.drop_generation(%(catalog_id)s, %(generation)s);

-- name: read_clock
-- The database's time.
select clock_timestamp() as now;

-- name: older_readers
-- Transactions that began before a moment, and so may read through the pointer as it was then. Where the server does
-- not tell what runs, there may always be one.
select case when current_setting('track_activities')::boolean then count(*) else 1 end as readers
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and xact_start < %(moment)s;

-- name: foreign_rows
-- Whether a loaded table holds a row of another tenant or catalogue: nothing has bound the load.
select exists (select from applied_revision where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    or exists (select from item_revision where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    or exists (select from mapping_revision where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    or exists (select from merchant where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    or exists (select from inventory where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    or exists (select from public_item where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    or exists (select from released_listing where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    or exists (select from released_mapping where (tenant_id, catalog_id) <> (%(tenant_id)s, %(catalog_id)s))
    as found;

-- name: copy_applied_revision
-- Load the newest applied revisions.
copy applied_revision (tenant_id, catalog_id, aggregate_type, aggregate_id, revision) from stdin (format binary);

-- name: copy_item_revision
-- Load items.
copy item_revision (tenant_id, catalog_id, item_id, revision, class_id, status, successors, title, attributes,
    identity_keys) from stdin (format binary);

-- name: copy_mapping_revision
-- Load mappings.
copy mapping_revision (tenant_id, catalog_id, listing_id, revision, item_id, item_revision, status, source_id,
    listing_key, merchant_id, url, title, observed_at) from stdin (format binary);

-- name: copy_merchant
-- Load merchants.
copy merchant (tenant_id, catalog_id, merchant_id, revision, name, source_id) from stdin (format binary);

-- name: copy_inventory
-- Load observations.
copy inventory (tenant_id, catalog_id, listing_id, revision, price_amount, price_currency, availability, observed_at)
from stdin (format binary);

-- name: copy_public_item
-- Load releases.
copy public_item (tenant_id, catalog_id, item_id, release_id, class_id, title, attributes, published_revision,
    publication_revision, release_position) from stdin (format binary);

-- name: copy_released_listing
-- Load the listings that releases name.
copy released_listing (tenant_id, catalog_id, item_id, listing_id, mapping_revision, release_position)
from stdin (format binary);

-- name: copy_released_mapping
-- Load the greatest mapping revisions that were ever released.
copy released_mapping (tenant_id, catalog_id, listing_id, mapping_revision) from stdin (format binary);

-- name: prepare_finish
-- Loaded tables have neither keys nor statistics yet, so that a nested loop reads one of them whole for each row of the
-- other; and keys are built in memory. First statistics are of a small sample: a full one takes longer than the keys,
-- and the server's own upkeep takes it soon after.
select set_config('enable_nestloop', 'off', true), set_config('work_mem', '64MB', true),
    set_config('maintenance_work_mem', '256MB', true), set_config('default_statistics_target', '10', true);

-- name: derive_public_attributes
-- The values by which items may be found.
insert into public_attribute (tenant_id, catalog_id, item_id, attribute_key, value, unit)
select item.tenant_id, item.catalog_id, item.item_id, given.key, given.value, given.unit
from public_item as item
cross join lateral jsonb_to_recordset(item.attributes) as given (key text, value text, unit text)
where octet_length(given.value) <= %(longest)s;

-- name: derive_public_listings
-- Each listing's one owner: as publishing assigns them, for all of them at once.
insert into public_listing (tenant_id, catalog_id, listing_id, item_id, mapping_revision, merchant_id, url, title)
select mapping.tenant_id, mapping.catalog_id, mapping.listing_id, owner.item_id, mapping.revision,
    mapping.merchant_id, mapping.url, mapping.title
from (
    select distinct on (listing_id) listing_id, item_id, mapping_revision
    from released_listing
    order by listing_id, mapping_revision desc, release_position desc
) as owner
join released_mapping as newest
    on newest.listing_id = owner.listing_id and newest.mapping_revision = owner.mapping_revision
join mapping_revision as mapping
    on mapping.listing_id = owner.listing_id and mapping.revision = owner.mapping_revision
where mapping.item_id = owner.item_id and mapping.status = 'active';

-- name: finish_shadow
-- Build the keys, and protect the tables.
select product.finish_shadow(%(generation)s);

-- name: lock_live_progress
-- Pause the live applier: it takes this lock first of all. In its order, so that neither waits for the other for ever.
select position from product.progress
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
    and generation = %(generation)s
for update;

-- name: lock_pointer
-- The pointer, which nobody else moves until the transaction ends.
select generation, history_epoch from product.serving_generation
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
for update;

-- name: put_pointer
-- Let a generation serve.
insert into product.serving_generation (tenant_id, catalog_id, generation, history_epoch)
values (%(tenant_id)s, %(catalog_id)s, %(generation)s, %(history_epoch)s)
on conflict (tenant_id, catalog_id) do update set
    generation = excluded.generation, history_epoch = excluded.history_epoch, switched_at = clock_timestamp();

-- name: let_live
-- Let a generation be the live one.
update product.generation set status = 'live'
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and generation = %(generation)s
    and status = 'shadow';

-- name: digest
-- The digest of each type of aggregate in the generation that was entered. The texts are those of the resolver's own
-- statement.
select aggregate_type, count(*) as aggregates,
    bit_xor(('x' || encode(sha256(convert_to(canonical::text, 'UTF8')), 'hex'))::bit(256))::text as bits
from (
    select 'catalog_item' as aggregate_type, jsonb_build_array(item_id, revision, class_id, status, successors, title,
        attributes, identity_keys) as canonical
    from (
        select distinct on (item_id) * from item_revision
        where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
        order by item_id, revision desc
    ) as item
    union all
    select 'listing_mapping', jsonb_build_array(listing_id, revision, item_id, item_revision, status, source_id,
        listing_key, merchant_id, url, title, (extract(epoch from observed_at) * 1000000)::bigint)
    from (
        select distinct on (listing_id) * from mapping_revision
        where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
        order by listing_id, revision desc
    ) as mapping
    union all
    select 'merchant', jsonb_build_array(merchant_id, revision, name, source_id) from merchant
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    union all
    select 'inventory_observation', jsonb_build_array(listing_id, revision, trim_scale(price_amount)::text,
        price_currency, availability, (extract(epoch from observed_at) * 1000000)::bigint)
    from inventory
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    union all
    select 'release', jsonb_build_array(public.release_id, public.publication_revision, public.item_id,
        public.published_revision, public.class_id, public.title, public.attributes, coalesce(named.listings, '[]'))
    from public_item as public
    left join (
        select item_id, jsonb_agg(jsonb_build_array(listing_id, mapping_revision)
            order by listing_id collate "C") as listings
        from released_listing
        where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
        group by item_id
    ) as named using (item_id)
    where public.tenant_id = %(tenant_id)s and public.catalog_id = %(catalog_id)s
) as held
group by aggregate_type;

-- name: is_at_rest
-- Whether nothing above progress is applied, so that the state is that of its progress.
select held.position, not exists (
    select from product.inbox as later
    where later.tenant_id = held.tenant_id and later.catalog_id = held.catalog_id
        and later.history_epoch = held.history_epoch and later.generation = held.generation
        and later.position > held.position and later.outcome in ('applied', 'stale')
) as at_rest
from product.progress as held
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and held.history_epoch = %(history_epoch)s and held.generation = %(generation)s;
