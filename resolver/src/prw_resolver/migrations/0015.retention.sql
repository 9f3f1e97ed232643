-- Retention: who holds changes back, leases of rebuilds, and the pruner. All of it under the lock of one row a stream.
-- depends: 0014.history_positions

set local role prw_owner;

-- A rebuild's hold on every change after its pin. By the server's clock; once over, it never comes back.
create table resolver.stream_lease (
    tenant_id     text        not null,
    catalog_id    text        not null,
    history_epoch bigint      not null,
    lease_id      text        not null,
    principal     text        not null,
    pin           bigint      not null check (pin >= 0),
    granted_at    timestamptz not null,
    expires_at    timestamptz not null,
    -- When it was released; a lease that ran out has none.
    ended_at      timestamptz,
    primary key (tenant_id, catalog_id, history_epoch, lease_id),
    foreign key (tenant_id, catalog_id, history_epoch) references resolver.stream_retention
);
call resolver.protect('resolver.stream_lease');
grant select on resolver.stream_lease to resolver_app;

-- Who changed what holds retention, when and why. Nothing is ever taken out of it.
create table resolver.stream_retention_event (
    tenant_id     text        not null,
    catalog_id    text        not null,
    history_epoch bigint      not null,
    number        bigint      not null generated always as identity,
    at            timestamptz not null,
    act           text        not null check (act in (
        'registered', 'paused', 'resumed', 'returned', 'retired', 'granted', 'released')),
    subject       text        not null,
    actor         text        not null,
    reason        text        not null,
    -- Where the consumer or the pin stood.
    position      bigint      not null,
    primary key (tenant_id, catalog_id, history_epoch, number)
);
call resolver.protect('resolver.stream_retention_event');
grant select on resolver.stream_retention_event to resolver_app;

-- Only the functions below write what they hold, each after it has the lock.
revoke insert, update on resolver.stream_consumer from resolver_app;
revoke insert on resolver.stream_retention from resolver_app;
revoke update (pruned_through) on resolver.stream_retention from resolver_app;
revoke insert on resolver.stream_cursor from resolver_app;

create function resolver.stream_audit(p_tenant text, p_catalog text, p_epoch bigint, p_act text, p_subject text,
    p_actor text, p_reason text, p_position bigint) returns void language sql as $$
    insert into resolver.stream_retention_event (tenant_id, catalog_id, history_epoch, at, act, subject, actor,
        reason, position)
    values (p_tenant, p_catalog, p_epoch, clock_timestamp(), p_act, p_subject, p_actor, p_reason, p_position);
$$;

-- The lock under which consumers register and report, leases are made, moved and renewed, and pruning runs. Returns
-- how far the stream is pruned. Time is read after it, by clock_timestamp(): now() is when the transaction began.
create function resolver.stream_lock_retention(p_tenant text, p_catalog text, p_epoch bigint) returns bigint
language plpgsql as $$
declare
    v_pruned bigint;
begin
    select r.pruned_through into v_pruned from resolver.stream_retention r
     where r.tenant_id = p_tenant and r.catalog_id = p_catalog and r.history_epoch = p_epoch
       for no key update;
    if not found or not exists (
        select from resolver.stream_cursor c
         where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
           and c.status = 'open') then
        raise exception 'EPOCH_FENCED' using errcode = 'PRW01',
            detail = format('epoch %s of %s/%s is not open', p_epoch, p_tenant, p_catalog);
    end if;
    return v_pruned;
end $$;

-- Registers a consumer at the floor, so that no pruning passes it from now on; again, it changes nothing.
create function resolver.stream_register_consumer(p_tenant text, p_catalog text, p_epoch bigint, p_consumer text,
    p_principal text) returns bigint language plpgsql as $$
declare
    v_pruned bigint := resolver.stream_lock_retention(p_tenant, p_catalog, p_epoch);
begin
    insert into resolver.stream_consumer (tenant_id, catalog_id, history_epoch, consumer_id, principal,
        reported_position, registered_at)
    values (p_tenant, p_catalog, p_epoch, p_consumer, p_principal, v_pruned, clock_timestamp())
    on conflict (tenant_id, catalog_id, history_epoch, consumer_id) do nothing;
    if found then
        perform resolver.stream_audit(p_tenant, p_catalog, p_epoch, 'registered', p_consumer, p_principal, '', v_pruned);
    end if;
    return v_pruned;
end $$;

-- Keeps the greatest progress reported. A paused consumer that reports is live again. Null for one that is not there,
-- is another principal's or is retired, since none of those may hold or move anything.
create function resolver.stream_report_progress(p_tenant text, p_catalog text, p_epoch bigint, p_consumer text,
    p_principal text, p_position bigint, out reported_position bigint, out reported_at timestamptz)
language plpgsql as $$
declare
    v_status text;
    v_cursor bigint;
begin
    perform resolver.stream_lock_retention(p_tenant, p_catalog, p_epoch);
    select c.position into v_cursor from resolver.stream_cursor c
     where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch;
    if p_position > v_cursor then
        raise exception 'CURSOR_AHEAD' using errcode = 'PRW01',
            detail = format('position %s is beyond the cursor, %s', p_position, v_cursor);
    end if;
    select c.status into v_status from resolver.stream_consumer c
     where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
       and c.consumer_id = p_consumer and c.principal = p_principal and c.status <> 'retired';
    if not found then
        return;
    end if;
    update resolver.stream_consumer c
       set reported_position = greatest(c.reported_position, p_position), reported_at = clock_timestamp(),
           status = 'live'
     where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
       and c.consumer_id = p_consumer
    returning c.reported_position, c.reported_at into reported_position, reported_at;
    if v_status = 'paused' then
        perform resolver.stream_audit(p_tenant, p_catalog, p_epoch, 'returned', p_consumer, p_principal, '',
            reported_position);
    end if;
end $$;

-- An operator's act on a consumer. One that was retired and is resumed starts at the floor at the earliest: what was
-- pruned meanwhile it has to rebuild from. False where there is no such consumer.
create function resolver.stream_move_consumer(p_tenant text, p_catalog text, p_epoch bigint, p_consumer text,
    p_act text, p_actor text, p_reason text) returns boolean language plpgsql as $$
declare
    v_pruned   bigint := resolver.stream_lock_retention(p_tenant, p_catalog, p_epoch);
    v_status   text := case p_act when 'paused' then 'paused' when 'resumed' then 'live' when 'retired' then 'retired' end;
    v_reported bigint;
begin
    update resolver.stream_consumer c
       set status = v_status, reported_position = greatest(c.reported_position, v_pruned)
     where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
       and c.consumer_id = p_consumer and c.status <> v_status
    returning c.reported_position into v_reported;
    if found then
        perform resolver.stream_audit(p_tenant, p_catalog, p_epoch, p_act, p_consumer, p_actor, p_reason, v_reported);
        return true;
    end if;
    return exists (
        select from resolver.stream_consumer c
         where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
           and c.consumer_id = p_consumer);
end $$;

-- A lease pinned at what is pruned already: nothing after it goes while it lasts.
create function resolver.stream_grant_lease(p_tenant text, p_catalog text, p_epoch bigint, p_lease text,
    p_principal text, p_lifetime interval, out pin bigint, out expires_at timestamptz)
language plpgsql as $$
begin
    pin := resolver.stream_lock_retention(p_tenant, p_catalog, p_epoch);
    expires_at := clock_timestamp() + p_lifetime;
    insert into resolver.stream_lease (tenant_id, catalog_id, history_epoch, lease_id, principal, pin, granted_at,
        expires_at)
    values (p_tenant, p_catalog, p_epoch, p_lease, p_principal, pin, clock_timestamp(), expires_at);
    perform resolver.stream_audit(p_tenant, p_catalog, p_epoch, 'granted', p_lease, p_principal, '', pin);
end $$;

-- Renews a lease and moves its pin forward to p_pin, where that is further. Neither is ever moved back, and a lease
-- that ran out or was released stays so. An unknown one, or another principal's, gives NOT_FOUND.
create function resolver.stream_renew_lease(p_tenant text, p_catalog text, p_epoch bigint, p_lease text,
    p_principal text, p_lifetime interval, p_pin bigint, out pin bigint, out expires_at timestamptz)
language plpgsql as $$
declare
    v_lease resolver.stream_lease;
begin
    perform resolver.stream_lock_retention(p_tenant, p_catalog, p_epoch);
    select l.* into v_lease from resolver.stream_lease l
     where l.tenant_id = p_tenant and l.catalog_id = p_catalog and l.history_epoch = p_epoch
       and l.lease_id = p_lease and l.principal = p_principal;
    if not found then
        raise exception 'NOT_FOUND' using errcode = 'PRW01', detail = format('there is no lease %s', p_lease);
    end if;
    if v_lease.ended_at is not null or v_lease.expires_at <= clock_timestamp() then
        raise exception 'LEASE_EXPIRED' using errcode = 'PRW01',
            detail = format('lease %s ended at %s', p_lease, coalesce(v_lease.ended_at, v_lease.expires_at));
    end if;
    update resolver.stream_lease l
       set pin = greatest(l.pin, least(p_pin, (
               select c.position from resolver.stream_cursor c
                where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch))),
           expires_at = greatest(l.expires_at, clock_timestamp() + p_lifetime)
     where l.tenant_id = p_tenant and l.catalog_id = p_catalog and l.history_epoch = p_epoch and l.lease_id = p_lease
    returning l.pin, l.expires_at into pin, expires_at;
end $$;

-- Ends a lease; one that is over already, or is not there, stays as it is.
create function resolver.stream_release_lease(p_tenant text, p_catalog text, p_epoch bigint, p_lease text,
    p_principal text) returns void language plpgsql as $$
declare
    v_pin bigint;
begin
    perform resolver.stream_lock_retention(p_tenant, p_catalog, p_epoch);
    update resolver.stream_lease l set ended_at = clock_timestamp()
     where l.tenant_id = p_tenant and l.catalog_id = p_catalog and l.history_epoch = p_epoch
       and l.lease_id = p_lease and l.principal = p_principal and l.ended_at is null
    returning l.pin into v_pin;
    if found then
        perform resolver.stream_audit(p_tenant, p_catalog, p_epoch, 'released', p_lease, p_principal, '', v_pin);
    end if;
end $$;

-- Prunes at most p_most changes (AW-03): a contiguous prefix that is published and older than p_age, through the
-- progress of every consumer that is not retired and the pin of every lease that lasts. Doubt keeps the data.
create function resolver.stream_prune(p_tenant text, p_catalog text, p_epoch bigint, p_age interval, p_most integer)
returns bigint language plpgsql as $$
declare
    v_pruned bigint := resolver.stream_lock_retention(p_tenant, p_catalog, p_epoch);
    v_now    timestamptz := clock_timestamp();
    v_bound  bigint;
    v_to     bigint;
begin
    select least(v_pruned + p_most,
        (select min(c.reported_position) from resolver.stream_consumer c
          where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
            and c.status <> 'retired'),
        (select min(l.pin) from resolver.stream_lease l
          where l.tenant_id = p_tenant and l.catalog_id = p_catalog and l.history_epoch = p_epoch
            and l.ended_at is null and l.expires_at > v_now)) into v_bound;
    select max(o.position) into v_to from (
        select b.position, b.position - row_number() over w = v_pruned
               and bool_and(b.published_at is not null and b.committed_at <= v_now - p_age) over w as may_go
          from resolver.outbox b
         where b.tenant_id = p_tenant and b.catalog_id = p_catalog and b.history_epoch = p_epoch
           and b.position > v_pruned and b.position <= v_bound
        window w as (order by b.position)) o
     where o.may_go;
    if v_to is null then
        return 0;
    end if;
    delete from resolver.outbox o
     where o.tenant_id = p_tenant and o.catalog_id = p_catalog and o.history_epoch = p_epoch
       and o.position > v_pruned and o.position <= v_to;
    update resolver.stream_retention r set pruned_through = v_to
     where r.tenant_id = p_tenant and r.catalog_id = p_catalog and r.history_epoch = p_epoch;
    return v_to - v_pruned;
end $$;

-- Who holds back what, the furthest back first: consumers that are not retired and leases that last. Bytes are
-- estimated from the first changes that are held, since to add up all of them would read them all.
create function resolver.stream_holds(p_tenant text, p_catalog text, p_epoch bigint)
returns table (kind text, holder text, principal text, status text, held_after bigint, held bigint, held_bytes bigint,
    oldest_at timestamptz, heard_at timestamptz, expires_at timestamptz)
language sql stable as $$
    with holder as (
        select 'consumer' as kind, c.consumer_id as holder, c.principal, c.status, c.reported_position as position,
               coalesce(c.reported_at, c.registered_at) as heard_at, null::timestamptz as expires_at
          from resolver.stream_consumer c
         where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
           and c.status <> 'retired'
        union all
        select 'lease', l.lease_id, l.principal, 'live', l.pin, l.granted_at, l.expires_at
          from resolver.stream_lease l
         where l.tenant_id = p_tenant and l.catalog_id = p_catalog and l.history_epoch = p_epoch
           and l.ended_at is null and l.expires_at > clock_timestamp())
    select h.kind, h.holder, h.principal, h.status, h.position, c.position - h.position,
           coalesce((c.position - h.position) * s.bytes, 0)::bigint, s.oldest_at, h.heard_at, h.expires_at
      from holder h
      join resolver.stream_cursor c
        on c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
      cross join lateral (
           select avg(octet_length(o.event)) as bytes, min(o.committed_at) as oldest_at
             from (select b.event, b.committed_at from resolver.outbox b
                    where b.tenant_id = p_tenant and b.catalog_id = p_catalog and b.history_epoch = p_epoch
                      and b.position > h.position
                    order by b.position limit 100) o) s
     order by h.position, h.kind, h.holder;
$$;

-- All of them run with their owner's rights, and stay within the tenant of the transaction (0013).
do $$
declare
    v_function regprocedure;
begin
    for v_function in
        select p.oid::regprocedure from pg_proc p
         where p.pronamespace = 'resolver'::regnamespace and p.proname in ('stream_register_consumer',
            'stream_report_progress', 'stream_move_consumer', 'stream_grant_lease', 'stream_renew_lease',
            'stream_release_lease', 'stream_prune', 'stream_holds', 'stream_open')
    loop
        execute format('alter function %s security definer', v_function);
        execute format('alter function %s set search_path = resolver, pg_catalog, pg_temp', v_function);
        execute format('revoke all on function %s from public', v_function);
        if v_function::text not like '%stream_prune(%' then
            execute format('grant execute on function %s to resolver_app', v_function);
        end if;
    end loop;
end $$;

-- The pruner's login: it may prune, ask who holds what, and learn which streams there are.
grant execute on function resolver.stream_prune(text, text, bigint, interval, integer) to resolver_pruner;
grant execute on function resolver.stream_holds(text, text, bigint) to resolver_pruner;

grant select (tenant_id, catalog_id, history_epoch, status, position) on resolver.stream_cursor to resolver_access;
-- The owner is a member of that role, and a policy holds for members too: only the role itself may look across.
create policy any_tenant on resolver.stream_cursor for select to resolver_access
using (current_user = 'resolver_access');

create function resolver.streams_of_epoch(p_epoch bigint) returns table (tenant_id text, catalog_id text)
language sql stable security definer set search_path = pg_catalog
begin atomic
    select c.tenant_id, c.catalog_id from resolver.stream_cursor c
     where c.history_epoch = p_epoch and c.status = 'open';
end;
alter function resolver.streams_of_epoch(bigint) owner to resolver_access;
set local role resolver_access;
revoke all on function resolver.streams_of_epoch(bigint) from public;
grant execute on function resolver.streams_of_epoch(bigint) to resolver_pruner;

reset role;
grant usage on schema resolver to resolver_pruner;
