-- name: i1_positions
-- I1: the retained events of the present epoch are exactly those after the floor through the cursor.
select c.tenant_id, c.catalog_id, 'positions ' || r.pruned_through + 1 || ' to ' || c.position as place,
       'there are ' || coalesce(o.held, 0) || ' events, from ' || coalesce(o.first::text, 'none') || ' to '
       || coalesce(o.last::text, 'none') as what
  from resolver.stream_cursor c
  join resolver.stream_retention r using (tenant_id, catalog_id, history_epoch)
  left join (select tenant_id, catalog_id, count(*) as held, min(position) as first, max(position) as last
               from resolver.outbox where history_epoch = %(history_epoch)s
              group by tenant_id, catalog_id) o using (tenant_id, catalog_id)
 where c.history_epoch = %(history_epoch)s
   and (coalesce(o.held, 0) <> c.position - r.pruned_through
        or (o.held > 0 and (o.first <> r.pruned_through + 1 or o.last <> c.position)));

-- name: i2_event_without_fact
-- I2: every event tells of a revision that was accepted at its position.
select o.tenant_id, o.catalog_id, 'position ' || o.position as place,
       o.aggregate_type || ' ' || o.aggregate_id || ' at ' || o.revision || ' is in no history' as what
  from resolver.outbox o
  left join resolver.catalog_revision f
    on f.tenant_id = o.tenant_id and f.catalog_id = o.catalog_id and f.aggregate_type = o.aggregate_type
   and f.aggregate_id = o.aggregate_id and f.revision = o.revision and f.history_epoch = o.history_epoch
   and f.position = o.position
 where o.history_epoch = %(history_epoch)s and f.revision is null
 limit %(most)s;

-- name: i2_fact_without_event
-- I2: every revision that was accepted above the floor has its event.
select f.tenant_id, f.catalog_id, 'position ' || f.position as place,
       f.aggregate_type || ' ' || f.aggregate_id || ' at ' || f.revision || ' has no event' as what
  from resolver.catalog_revision f
  join resolver.stream_retention r using (tenant_id, catalog_id, history_epoch)
  left join resolver.outbox o
    on o.tenant_id = f.tenant_id and o.catalog_id = f.catalog_id and o.history_epoch = f.history_epoch
   and o.position = f.position and o.aggregate_type = f.aggregate_type and o.aggregate_id = f.aggregate_id
   and o.revision = f.revision
 where f.history_epoch = %(history_epoch)s and f.position > r.pruned_through and o.position is null
 limit %(most)s;

-- name: i2_heads
-- I2: what is accepted now is the newest revision of its history, which counts from 1 without a gap.
with head as (
    select tenant_id, catalog_id, 'catalog_item' as type, item_id as id, revision from resolver.catalog_item
    union all
    select tenant_id, catalog_id, 'merchant', merchant_id, revision from resolver.merchant
    union all
    select tenant_id, catalog_id, 'listing_mapping', listing_id, revision from resolver.listing_mapping
    union all
    select tenant_id, catalog_id, 'inventory_observation', listing_id, revision from resolver.inventory_observation
    union all
    select tenant_id, catalog_id, 'release', release_id, revision from resolver.release
), newest as (
    select tenant_id, catalog_id, aggregate_type as type, aggregate_id as id, max(revision) as revision,
           count(*) as held
      from resolver.catalog_revision group by 1, 2, 3, 4
)
select tenant_id, catalog_id, type || ' ' || id as place,
       'it stands at ' || coalesce(h.revision::text, 'nothing') || ', its history has ' || coalesce(n.held, 0)
       || ' revisions up to ' || coalesce(n.revision::text, 'none') as what
  from head h
  full join newest n using (tenant_id, catalog_id, type, id)
 where h.revision is distinct from n.revision or n.held is distinct from n.revision
 limit %(most)s;

-- name: i4_consumers
-- I4: nothing is pruned that a consumer which is not retired has not processed.
select r.tenant_id, r.catalog_id, 'consumer ' || c.consumer_id as place,
       'it has reported ' || c.reported_position || ', and everything through ' || r.pruned_through || ' is pruned' as what
  from resolver.stream_retention r
  join resolver.stream_consumer c using (tenant_id, catalog_id, history_epoch)
 where r.history_epoch = %(history_epoch)s and c.status <> 'retired' and c.reported_position < r.pruned_through;

-- name: i4_leases
-- I4: nothing is pruned that a lease holds.
select r.tenant_id, r.catalog_id, 'lease ' || l.lease_id as place,
       'it is pinned at ' || l.pin || ', and everything through ' || r.pruned_through || ' is pruned' as what
  from resolver.stream_retention r
  join resolver.stream_lease l using (tenant_id, catalog_id, history_epoch)
 where r.history_epoch = %(history_epoch)s and l.ended_at is null and l.expires_at > clock_timestamp()
   and l.pin < r.pruned_through;

-- name: i6_reports
-- I6: no consumer has reported what the stream does not have.
select c.tenant_id, c.catalog_id, 'consumer ' || c.consumer_id as place,
       'it has reported ' || c.reported_position || ', and the cursor is at ' || s.position as what
  from resolver.stream_consumer c
  join resolver.stream_cursor s using (tenant_id, catalog_id, history_epoch)
 where c.history_epoch = %(history_epoch)s and c.reported_position > s.position;

-- name: floor
-- The floor is never above the cursor.
select c.tenant_id, c.catalog_id, 'cursor ' || c.position as place,
       'everything through ' || r.pruned_through || ' is pruned' as what
  from resolver.stream_cursor c
  join resolver.stream_retention r using (tenant_id, catalog_id, history_epoch)
 where c.history_epoch = %(history_epoch)s and r.pruned_through > c.position;

-- name: epochs
-- No stream is open but those of the present epoch, and none is of a later one.
select tenant_id, catalog_id, 'epoch ' || history_epoch as place,
       'it is ' || status || ', and the control plane says ' || %(history_epoch)s::bigint as what
  from resolver.stream_cursor
 where history_epoch > %(history_epoch)s or (history_epoch < %(history_epoch)s and status = 'open');
