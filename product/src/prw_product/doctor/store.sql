-- name: i3_missing
-- I3: every position above the inbox's floor and at or below progress is in the inbox.
select 'positions ' || held.inbox_floor + 1 || ' to ' || held.position as place,
    'the inbox has ' || coalesce(seen.count, 0) || ' of them' as what
from product.progress as held
left join lateral (
    select count(*) from product.inbox as one
    where one.tenant_id = held.tenant_id and one.catalog_id = held.catalog_id
        and one.history_epoch = held.history_epoch and one.generation = held.generation
        and one.position > held.inbox_floor and one.position <= held.position
) as seen on true
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and held.history_epoch = %(history_epoch)s and held.generation = %(generation)s
    and coalesce(seen.count, 0) <> held.position - held.inbox_floor;

-- name: i8_not_processed
-- I8: every position at or below progress has a terminal outcome.
select 'position ' || seen.position as place, 'it is ' || seen.outcome || ', and progress is beyond it' as what
from product.progress as held
join product.inbox as seen using (tenant_id, catalog_id, history_epoch, generation)
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and held.history_epoch = %(history_epoch)s and held.generation = %(generation)s
    and seen.position <= held.position and seen.outcome not in ('applied', 'stale', 'duplicate')
limit %(most)s;

-- name: progress_stands
-- Progress goes through every processed position: the one after it is not processed.
select 'position ' || seen.position as place, 'it is ' || seen.outcome || ', and progress stands before it' as what
from product.progress as held
join product.inbox as seen using (tenant_id, catalog_id, history_epoch, generation)
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and held.history_epoch = %(history_epoch)s and held.generation = %(generation)s
    and seen.position = held.position + 1 and seen.outcome in ('applied', 'stale', 'duplicate');

-- name: parked_pairs
-- An event waits if and only if the inbox says so, and each that waits says what for.
select 'position ' || position as place,
    case when waiting.position is null then 'the inbox says that it waits, and it is not kept'
        when seen.position is null then 'it is kept waiting, and the inbox does not say so'
        else 'it waits for nothing' end as what
from (
    select position from product.inbox
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
        and history_epoch = %(history_epoch)s and generation = %(generation)s and outcome = 'parked'
) as seen
full join (
    select position from product.parked
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
        and history_epoch = %(history_epoch)s and generation = %(generation)s
) as waiting using (position)
where seen.position is null or waiting.position is null or not exists (
    select from product.parked_need as need
    where need.tenant_id = %(tenant_id)s and need.catalog_id = %(catalog_id)s
        and need.history_epoch = %(history_epoch)s and need.generation = %(generation)s
        and need.position = seen.position)
limit %(most)s;

-- name: needs_without_event
-- Nothing is waited for by an event that is not there.
select 'position ' || need.position as place, 'it is noted to wait, and is not kept' as what
from product.parked_need as need
left join product.parked as waiting using (tenant_id, catalog_id, history_epoch, generation, position)
where need.tenant_id = %(tenant_id)s and need.catalog_id = %(catalog_id)s
    and need.history_epoch = %(history_epoch)s and need.generation = %(generation)s
    and waiting.position is null
limit %(most)s;

-- name: i8_states
-- I8: of every aggregate the state that is kept is that of its newest applied revision.
with state as (
    select 'catalog_item' as type, item_id as id, max(revision) as revision from item_revision
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s group by item_id
    union all
    select 'listing_mapping', listing_id, max(revision) from mapping_revision
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s group by listing_id
    union all
    select 'merchant', merchant_id, revision from merchant
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    union all
    select 'source', source_id, revision from source
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    union all
    select 'inventory_observation', listing_id, revision from inventory
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    union all
    select 'release', release_id, publication_revision from public_item
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
), applied as (
    select aggregate_type as type, aggregate_id as id, revision from applied_revision
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type <> 'shipping_policy'
)
select type || ' ' || id as place,
    'applied ' || coalesce(applied.revision::text, 'never') || ', kept ' || coalesce(state.revision::text, 'nothing') as what
from applied
full join state using (type, id)
where applied.revision is distinct from state.revision
limit %(most)s;

-- name: public_listings
-- A public listing is one that the newest release of its item names, in the state of that very revision.
select 'listing ' || public.listing_id as place, 'it is public under ' || public.item_id || ', which does not name it so' as what
from public_listing as public
left join released_listing as named
    on named.tenant_id = public.tenant_id and named.catalog_id = public.catalog_id
    and named.item_id = public.item_id and named.listing_id = public.listing_id
    and named.mapping_revision = public.mapping_revision
where public.tenant_id = %(tenant_id)s and public.catalog_id = %(catalog_id)s and named.listing_id is null
limit %(most)s;

-- name: generations
-- One generation is live, and it is the one that serves.
select 'generation ' || held.generation as place,
    'it is ' || held.status || ', and ' || pointer.generation || ' serves' as what
from product.generation as held
join product.serving_generation as pointer using (tenant_id, catalog_id)
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and (held.status = 'live') <> (held.generation = pointer.generation);

-- name: refused
-- What holds progress until an operator acts: a change that could not be applied.
select 'position ' || letter.position as place, letter.code || ': ' || letter.message as what
from product.dead_letter as letter
where letter.tenant_id = %(tenant_id)s and letter.catalog_id = %(catalog_id)s
    and letter.history_epoch = %(history_epoch)s and letter.generation = %(generation)s
    and letter.resolved_at is null
order by letter.position
limit %(most)s;
