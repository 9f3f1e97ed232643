-- name: lock_progress
-- The consumer's durable progress, locked first of all, and whether its generation serves.
select held.position, pointer.generation = held.generation as serves
from product.progress as held
join product.serving_generation as pointer
    on pointer.tenant_id = held.tenant_id and pointer.catalog_id = held.catalog_id
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and held.history_epoch = %(history_epoch)s and held.generation = %(generation)s
for no key update of held for share of pointer;

-- name: put_progress
-- Begin a generation's progress; does nothing where it has begun.
insert into product.progress (tenant_id, catalog_id, history_epoch, generation)
values (%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(generation)s)
on conflict (tenant_id, catalog_id, history_epoch, generation) do nothing;

-- name: read_progress
-- The consumer's durable progress.
select position from product.progress
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and history_epoch = %(history_epoch)s and generation = %(generation)s;

-- name: find_inbox
-- Inbox rows of these positions or these events.
select position, event_id, digest, outcome from product.inbox
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and history_epoch = %(history_epoch)s and generation = %(generation)s
    and position = any(%(positions)s)
union
select position, event_id, digest, outcome from product.inbox
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and history_epoch = %(history_epoch)s and generation = %(generation)s
    and event_id = any(%(event_ids)s) and outcome <> 'duplicate';

-- name: find_waiting
-- Parked events that wait for these aggregates, or for what those would release, and so on.
with recursive woken (aggregate_type, aggregate_id) as (
    select * from unnest(%(types)s::text[], %(ids)s::text[])
    union
    select waiting.aggregate_type, waiting.aggregate_id
    from woken
    join product.parked_need as need
        on need.tenant_id = %(tenant_id)s and need.catalog_id = %(catalog_id)s
        and need.history_epoch = %(history_epoch)s and need.generation = %(generation)s
        and need.needed_type = woken.aggregate_type and need.needed_id = woken.aggregate_id
    join product.parked as waiting
        on waiting.tenant_id = %(tenant_id)s and waiting.catalog_id = %(catalog_id)s
        and waiting.history_epoch = %(history_epoch)s and waiting.generation = %(generation)s
        and waiting.position = need.position
)
select waiting.position, waiting.committed_at, waiting.event
from product.parked as waiting
where waiting.tenant_id = %(tenant_id)s and waiting.catalog_id = %(catalog_id)s
    and waiting.history_epoch = %(history_epoch)s and waiting.generation = %(generation)s
    and waiting.position = any(array(
        select need.position
        from woken
        join product.parked_need as need
            on need.tenant_id = %(tenant_id)s and need.catalog_id = %(catalog_id)s
            and need.history_epoch = %(history_epoch)s and need.generation = %(generation)s
            and need.needed_type = woken.aggregate_type and need.needed_id = woken.aggregate_id
    ))
order by waiting.position;

-- name: find_applied
-- The applied revisions of these aggregates.
select aggregate_type, aggregate_id, revision
from applied_revision
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and aggregate_type = any(%(types)s) and aggregate_id = any(%(ids)s);

-- name: find_mapping_states
-- Which revisions of these listings' mappings are stored.
select listing_id, revision
from mapping_revision
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and listing_id = any(%(listings)s) and revision = any(%(revisions)s);

-- name: put_inbox
-- Note what became of each position. Only what held progress may change, to the same content's
-- later outcome; every other conflict writes no row, which the caller counts.
insert into product.inbox (tenant_id, catalog_id, history_epoch, generation, position, event_id,
    digest, outcome)
select %(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(generation)s, given.*
from unnest(%(positions)s::bigint[], %(event_ids)s::text[], %(digests)s::bytea[],
    %(outcomes)s::text[]) as given
on conflict (tenant_id, catalog_id, history_epoch, generation, position) do update set
    outcome = excluded.outcome, event_id = excluded.event_id
where inbox.digest = excluded.digest and inbox.outcome in ('parked', 'poison');

-- name: put_parked
-- Keep events whose dependencies are missing.
insert into product.parked (tenant_id, catalog_id, history_epoch, generation, position,
    aggregate_type, aggregate_id, committed_at, event)
select %(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(generation)s, given.*
from unnest(%(positions)s::bigint[], %(types)s::text[], %(ids)s::text[],
    %(committed)s::timestamptz[], %(events)s::bytea[]) as given;

-- name: put_parked_needs
-- Note which aggregates each parked event waits for.
insert into product.parked_need (tenant_id, catalog_id, history_epoch, generation, position,
    needed_type, needed_id, needed_revision)
select %(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(generation)s, given.*
from unnest(%(positions)s::bigint[], %(types)s::text[], %(ids)s::text[],
    %(revisions)s::bigint[]) as given;

-- name: delete_parked
-- Let go of events that wait no longer.
delete from product.parked
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and history_epoch = %(history_epoch)s and generation = %(generation)s
    and position = any(%(positions)s);

-- name: delete_parked_needs
-- Let go of what they waited for.
delete from product.parked_need
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and history_epoch = %(history_epoch)s and generation = %(generation)s
    and position = any(%(positions)s);

-- name: put_dead_letters
-- Keep refused events whole; one that comes again is counted.
insert into product.dead_letter (tenant_id, catalog_id, history_epoch, generation, position,
    digest, code, message, event)
select %(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(generation)s, given.*
from unnest(%(positions)s::bigint[], %(digests)s::bytea[], %(codes)s::text[],
    %(messages)s::text[], %(events)s::bytea[]) as given
on conflict (tenant_id, catalog_id, history_epoch, generation, position, digest) do update set
    times = dead_letter.times + 1, last_seen_at = clock_timestamp(), code = excluded.code,
    message = excluded.message, resolved_at = null;

-- name: resolve_dead_letters
-- Positions that were refused before and are processed now.
update product.dead_letter set resolved_at = clock_timestamp()
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and history_epoch = %(history_epoch)s and generation = %(generation)s
    and position = any(%(positions)s) and resolved_at is null;

-- name: put_ignored
-- Audit events of fenced epochs; one that comes again is there already.
insert into product.ignored_event (tenant_id, catalog_id, history_epoch, position, digest,
    event_id, followed_epoch)
select %(tenant_id)s, %(catalog_id)s, given.epoch, given.position, given.digest, given.event_id,
    %(history_epoch)s
from unnest(%(epochs)s::bigint[], %(positions)s::bigint[], %(digests)s::bytea[],
    %(event_ids)s::text[]) as given (epoch, position, digest, event_id)
on conflict (tenant_id, catalog_id, history_epoch, position, digest) do nothing;

-- name: advance_progress
-- Move progress through the contiguous prefix of processed positions, and say where it stands.
-- The first test keeps a position that is held from costing a scan of all that follows it.
with processed as (
    select position, row_number() over (order by position) as place
    from product.inbox
    where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
        and history_epoch = %(history_epoch)s and generation = %(generation)s
        and position > %(progress)s and outcome in ('applied', 'stale', 'duplicate')
        and exists (
            select from product.inbox as next
            where next.tenant_id = %(tenant_id)s and next.catalog_id = %(catalog_id)s
                and next.history_epoch = %(history_epoch)s and next.generation = %(generation)s
                and next.position = %(progress)s + 1
                and next.outcome in ('applied', 'stale', 'duplicate')
        )
)
update product.progress set
    position = coalesce(
        (select max(position) from processed where position = %(progress)s + place),
        progress.position),
    updated_at = clock_timestamp()
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
    and history_epoch = %(history_epoch)s and generation = %(generation)s
    and progress.position = %(progress)s
returning position;

-- name: find_hold
-- What holds progress: how the position after it stands, whether later ones are there, and why.
select held.position + 1 as position, seen.outcome, letter.code, letter.message,
    (
        select need.needed_type || ' ' || need.needed_id || ' at ' || need.needed_revision
        from product.parked_need as need
        left join applied_revision as applied
            on applied.tenant_id = need.tenant_id and applied.catalog_id = need.catalog_id
            and applied.aggregate_type = need.needed_type
            and applied.aggregate_id = need.needed_id
        where need.tenant_id = held.tenant_id and need.catalog_id = held.catalog_id
            and need.history_epoch = held.history_epoch and need.generation = held.generation
            and need.position = held.position + 1
        order by coalesce(applied.revision, 0) < need.needed_revision
            and (need.needed_type, need.needed_id)
                <> (waiting.aggregate_type, waiting.aggregate_id) desc,
            need.needed_type, need.needed_id
        limit 1
    ) as waits_for,
    exists (
        select from product.inbox as later
        where later.tenant_id = held.tenant_id and later.catalog_id = held.catalog_id
            and later.history_epoch = held.history_epoch and later.generation = held.generation
            and later.position > held.position + 1
    ) as later
from product.progress as held
left join product.inbox as seen
    on seen.tenant_id = held.tenant_id and seen.catalog_id = held.catalog_id
    and seen.history_epoch = held.history_epoch and seen.generation = held.generation
    and seen.position = held.position + 1
left join product.parked as waiting
    on waiting.tenant_id = held.tenant_id and waiting.catalog_id = held.catalog_id
    and waiting.history_epoch = held.history_epoch and waiting.generation = held.generation
    and waiting.position = held.position + 1
left join lateral (
    select code, message from product.dead_letter
    where tenant_id = held.tenant_id and catalog_id = held.catalog_id
        and history_epoch = held.history_epoch and generation = held.generation
        and position = held.position + 1 and resolved_at is null
    order by last_seen_at desc
    limit 1
) as letter on true
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and held.history_epoch = %(history_epoch)s and held.generation = %(generation)s;

-- name: count_state
-- What an operator asks of a consumer, in one row.
select held.position as progress,
    (select count(*) from product.parked as waiting
        where waiting.tenant_id = held.tenant_id and waiting.catalog_id = held.catalog_id
        and waiting.history_epoch = held.history_epoch
        and waiting.generation = held.generation) as parked,
    (select count(*) from product.inbox as poison
        where poison.tenant_id = held.tenant_id and poison.catalog_id = held.catalog_id
        and poison.history_epoch = held.history_epoch and poison.generation = held.generation
        and poison.position > held.position and poison.outcome = 'poison') as poison,
    (select count(*) from product.dead_letter as letter
        where letter.tenant_id = held.tenant_id and letter.catalog_id = held.catalog_id
        and letter.history_epoch = held.history_epoch and letter.generation = held.generation
        and letter.resolved_at is null) as dead_letters,
    (select count(*) from product.ignored_event as ignored
        where ignored.tenant_id = held.tenant_id
        and ignored.catalog_id = held.catalog_id) as ignored,
    held.updated_at
from product.progress as held
where held.tenant_id = %(tenant_id)s and held.catalog_id = %(catalog_id)s
    and held.history_epoch = %(history_epoch)s and held.generation = %(generation)s;
