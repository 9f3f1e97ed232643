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

-- name: lock_retention
-- The lock under which consumers register and progress is kept.
select pruned_through from resolver.stream_retention
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
   for update;

-- name: register_consumer
-- Register a consumer; doing it again keeps its progress.
insert into resolver.stream_consumer (tenant_id, catalog_id, history_epoch, consumer_id, principal,
       reported_position, registered_at)
values (%(tenant_id)s, %(catalog_id)s, %(history_epoch)s, %(consumer_id)s, %(principal)s, %(floor)s,
       clock_timestamp())
on conflict (tenant_id, catalog_id, history_epoch, consumer_id) do nothing;

-- name: find_consumer
-- A consumer of the stream with what it last reported.
select principal, status, reported_position, reported_at
  from resolver.stream_consumer
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
   and consumer_id = %(consumer_id)s;

-- name: report_progress
-- Keep the greatest progress reported; it never goes back.
update resolver.stream_consumer
   set reported_position = greatest(reported_position, %(position)s), reported_at = clock_timestamp()
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and history_epoch = %(history_epoch)s
   and consumer_id = %(consumer_id)s
returning reported_position, reported_at;

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

-- name: system_identifier
-- Which database cluster this is, as the control plane knows it.
select system_identifier::text from pg_control_system();
