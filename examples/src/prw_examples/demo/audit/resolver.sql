-- name: standing
-- What the resolver still has to do for a catalogue, and where its stream is, in one snapshot.
select
    (select count(*) from resolver.capture as c where c.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s)
        as captures,
    (select count(*) from resolver.capture as c
     where c.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s and not exists (
        select from resolver.job_inbox as i
        where i.tenant_id = c.tenant_id and i.capture_id = c.capture_id and i.stage = 'identify'
     )) as unresolved,
    (select count(*) from resolver.procrastinate_jobs as j
     where j.status in ('todo', 'doing') and j.args ->> 'tenant_id' = %(tenant)s) as jobs,
    array(select d.capture_id || ' at ' || d.stage || ': ' || d.code || ': ' || d.detail
          from resolver.dead_letter as d where d.tenant_id = %(tenant)s order by d.dead_at) as dead_letters,
    (select count(*) from resolver.review_wake as w
     where w.tenant_id = %(tenant)s and w.catalog_id = %(catalog)s) as wakes,
    (select count(*) from resolver.release_due as d
     where d.tenant_id = %(tenant)s and d.catalog_id = %(catalog)s) as releases_due,
    (select count(*) from resolver.receipt as r
     join resolver.capture as c on c.tenant_id = r.tenant_id and c.capture_id = r.capture_id
     where c.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s) as submitted,
    (select count(*) from resolver.record_outcome as o
     where o.tenant_id = %(tenant)s and o.catalog_id = %(catalog)s
       and o.actor_kind = 'rule' and o.outcome in ('accepted', 'unchanged')) as accepted,
    (select count(*) from resolver.review_case as c
     where c.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s
       and c.status in ('awaiting_human', 'deferred')) as in_review,
    coalesce(s.history_epoch, 0) as history_epoch,
    coalesce(s.position, 0) as position
from (values (1)) as one
left join lateral (
    select c.history_epoch, c.position from resolver.stream_cursor as c
    where c.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s and c.status = 'open'
    order by c.history_epoch desc limit 1
) as s on true;

-- name: outbox_gaps
-- How many positions up to the cursor have no event.
select count(*) as gaps from generate_series(1, %(position)s::bigint) as p
where not exists (
    select from resolver.outbox as o
    where o.tenant_id = %(tenant)s and o.catalog_id = %(catalog)s and o.history_epoch = %(history_epoch)s
      and o.position = p
);

-- name: duplicates
-- Listings with more than one active mapping, and captures that share an idempotency key with an earlier one.
select
    (select count(*) from (
        select from resolver.listing_mapping as m
        where m.tenant_id = %(tenant)s and m.catalog_id = %(catalog)s and m.status = 'active'
        group by m.source_id, m.listing_key having count(*) > 1
    ) as twice)
    + (select count(*) - count(distinct c.idempotency_key) from resolver.capture as c
       where c.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s) as duplicates;

-- name: listings
-- The newest reading of every listing, with its values and what was accepted of it.
with newest as (
    select distinct on (c.source_id, r.listing_key)
        n.tenant_id, c.catalog_id, c.source_id, r.listing_key, n.capture_id, n.record_id, n.attempt_group,
        n.extraction_group, n.ambiguous, c.native_record_id, c.document
    from resolver.normalised_record as n
    join resolver.record as r
        on r.tenant_id = n.tenant_id and r.capture_id = n.capture_id and r.attempt_group = n.extraction_group
        and r.record_id = n.record_id
    join resolver.capture as c on c.tenant_id = n.tenant_id and c.capture_id = n.capture_id
    where n.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s
    order by c.source_id, r.listing_key, c.captured_at desc, n.attempt_group desc
)

select
    n.source_id, n.listing_key, n.ambiguous,
    coalesce(n.document #>> '{parts,0,url_asked}', n.native_record_id) as page,
    array(select distinct a.value_as_stated from resolver.claim as a
          where a.tenant_id = n.tenant_id and a.capture_id = n.capture_id and a.attempt_group = n.extraction_group
            and a.record_id = n.record_id and a.attribute = 'core:sku') as sku,
    coalesce((select a.value_as_stated from resolver.claim as a
              where a.tenant_id = n.tenant_id and a.capture_id = n.capture_id
                and a.attempt_group = n.extraction_group and a.record_id = n.record_id and a.is_merchant), '')
        as seller,
    coalesce((select jsonb_object_agg(v.attribute_key, jsonb_build_array(v.value, v.unit, v.basis))
              from resolver.normalised_value as v
              where v.tenant_id = n.tenant_id and v.capture_id = n.capture_id
                and v.attempt_group = n.attempt_group and v.record_id = n.record_id), '{}') as said,
    array(select m.listing_id from resolver.listing_mapping as m
          where m.tenant_id = n.tenant_id and m.catalog_id = n.catalog_id and m.source_id = n.source_id
            and m.listing_key = n.listing_key) as listing_ids,
    array(select m.item_id from resolver.listing_mapping as m
          where m.tenant_id = n.tenant_id and m.catalog_id = n.catalog_id and m.source_id = n.source_id
            and m.listing_key = n.listing_key and m.status = 'active') as items,
    array(select d.actor_kind from resolver.listing_mapping as m
          join resolver.decision as d on d.tenant_id = m.tenant_id and d.decision_id = m.decision_id
          where m.tenant_id = n.tenant_id and m.catalog_id = n.catalog_id and m.source_id = n.source_id
            and m.listing_key = n.listing_key and m.status = 'active') as deciders,
    exists (select from resolver.review_case as c
            where c.tenant_id = n.tenant_id and c.catalog_id = n.catalog_id and c.source_id = n.source_id
              and c.listing_key = n.listing_key and c.status in ('awaiting_human', 'deferred')) as has_open_case
from newest as n;

-- name: items
-- Every accepted item with its attributes, and whether the evidence of its first revision is a trusted source's.
select
    i.item_id, i.status,
    coalesce((select jsonb_object_agg(a.attribute_key, jsonb_build_array(a.value, a.unit))
              from resolver.catalog_item_attribute as a
              where a.tenant_id = i.tenant_id and a.catalog_id = i.catalog_id and a.item_id = i.item_id), '{}')
        as attributes,
    exists (
        select from resolver.catalog_revision as r
        cross join jsonb_array_elements(r.evidence) as e
        join resolver.capture as c on c.tenant_id = r.tenant_id and c.capture_id = e ->> 'capture_id'
        join resolver.source as s on s.tenant_id = c.tenant_id and s.source_id = c.source_id
        where r.tenant_id = i.tenant_id and r.catalog_id = i.catalog_id and r.aggregate_type = 'catalog_item'
          and r.aggregate_id = i.item_id and r.revision = 1 and s.trusted_to_introduce
    ) as trusted
from resolver.catalog_item as i
where i.tenant_id = %(tenant)s and i.catalog_id = %(catalog)s;

-- name: facts
-- Every accepted fact, each of its revisions, with what it rests on.
select r.aggregate_type, r.aggregate_id, r.revision, r.evidence
from resolver.catalog_revision as r
where r.tenant_id = %(tenant)s and r.catalog_id = %(catalog)s
order by r.aggregate_type, r.aggregate_id, r.revision;

-- name: captures
-- Every capture as it was received; its document names the parts.
select c.capture_id, c.document from resolver.capture as c
where c.tenant_id = %(tenant)s and c.catalog_id = %(catalog)s;
