-- name: open
-- Make the stream's cursor and retention rows where they are not there yet.
select resolver.stream_open(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s);

-- name: commit
-- Commit a group of commands in one server-side call.
select resolver.stream_commit(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(commands)s) as answers;

-- name: command
-- The former answer to a command, and what it was.
select answer, digest from resolver.stream_command
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and command_id = %(command_id)s;

-- name: page
-- One statement reads the page and the floor that it is read against, or a page just pruned would look like a hole.
select c.position as cursor_position, r.pruned_through, o.position, o.committed_at, o.event
  from resolver.stream_cursor c
  join resolver.stream_retention r using (tenant_id, catalog_id, history_epoch)
  left join lateral (
       select b.position, b.committed_at, b.event
         from resolver.outbox b
        where b.tenant_id = c.tenant_id and b.catalog_id = c.catalog_id and b.history_epoch = c.history_epoch
          and b.position > %(after)s and b.position <= c.position
        order by b.position
        limit %(page_size)s) o on true
 where c.tenant_id = %(tenant_id)s and c.catalog_id = %(catalog_id)s and c.history_epoch = %(history_epoch)s
 order by o.position;

-- name: register_consumer
-- Register a consumer under the retention lock; doing it again keeps its progress. Gives the floor.
select resolver.stream_register_consumer(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(consumer_id)s,
       %(principal)s) as pruned_through;

-- name: find_consumer
-- A consumer of the stream with what it last reported.
select consumer_id, principal, status, reported_position, reported_at, registered_at
  from resolver.stream_consumer
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
   and consumer_id = %(consumer_id)s;

-- name: report_progress
-- Keep the greatest progress reported, under the retention lock; nulls where the consumer may not report.
select reported_position, reported_at
  from resolver.stream_report_progress(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(consumer_id)s,
       %(principal)s, %(position)s);

-- name: move_consumer
-- Pause, resume or retire a consumer; false where there is none of that name.
select resolver.stream_move_consumer(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(consumer_id)s, %(act)s,
       %(actor)s, %(reason)s) as found;

-- name: consumers
-- All consumers of a stream, retired ones too.
select consumer_id, principal, status, reported_position, reported_at, registered_at
  from resolver.stream_consumer
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
 order by consumer_id;

-- name: retention_events
-- The last acts on what holds retention, newest first.
select at, act, subject, actor, reason, position
  from resolver.stream_retention_event
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
 order by number desc
 limit %(most)s;

-- name: grant_lease
-- A lease pinned at the floor.
select pin, expires_at
  from resolver.stream_grant_lease(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(lease_id)s, %(principal)s,
       %(lifetime)s);

-- name: renew_lease
-- Renew a lease that lasts, and move its pin forward.
select pin, expires_at
  from resolver.stream_renew_lease(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(lease_id)s, %(principal)s,
       %(lifetime)s, %(pin)s);

-- name: release_lease
-- End a lease.
select resolver.stream_release_lease(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(lease_id)s, %(principal)s);

-- name: find_lease
-- A lease of this principal, and whether it lasts.
select pin, expires_at, ended_at is null and expires_at > clock_timestamp() as lasts
  from resolver.stream_lease
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
   and lease_id = %(lease_id)s and principal = %(principal)s;

-- name: prune
-- Prune a batch within all bounds; gives how many changes went.
select resolver.stream_prune(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(age)s, %(most)s) as pruned;

-- name: holds
-- Who holds back what, the furthest back first.
select kind, holder, principal, status, held_after as position, held, held_bytes, oldest_at, heard_at, expires_at,
       clock_timestamp() as now
  from resolver.stream_holds(%(tenant_id)s, %(catalog_id)s, %(history_epoch)s);

-- name: streams_of_epoch
-- The open streams of every tenant. For `resolver_pruner` only.
select tenant_id, catalog_id from resolver.streams_of_epoch(%(history_epoch)s) order by 1, 2;

-- name: mark_published
-- Mark the oldest changes of each stream that are not yet published; several relays share the work.
with batch as (
    select tenant_id, catalog_id, history_epoch, position
      from resolver.outbox
     where published_at is null
     order by tenant_id, catalog_id, history_epoch, position
     limit %(most)s
       for update skip locked)
update resolver.outbox o
   set published_at = clock_timestamp()
  from batch b
 where o.tenant_id = b.tenant_id and o.catalog_id = b.catalog_id and o.history_epoch = b.history_epoch
   and o.position = b.position
returning o.position;

-- name: standing
-- Which database cluster this is, on which timeline, and the sum of an epoch's positions over every tenant.
select (select system_identifier::text from pg_control_system()) as system_identifier,
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer as timeline,
       resolver.positions_of_epoch(%(history_epoch)s) as positions;

-- name: fence_before
-- End every history before an epoch, in the database as it was restored. For the migrator's login only.
select tenant_id, catalog_id, history_epoch, position_reached as position
  from resolver.fence_before(%(history_epoch)s);
