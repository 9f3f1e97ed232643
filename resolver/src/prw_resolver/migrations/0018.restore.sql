-- Restoring: how far an epoch is over all tenants, and how a history is ended for good.
-- depends: 0017.doctor

set local role prw_owner;

-- Where histories were parted by a restore, for audit: the old epoch ends at this position, the new one begins at 0.
create table resolver.history_parting (
    tenant_id     text        not null,
    catalog_id    text        not null,
    history_epoch bigint      not null,
    position      bigint      not null,
    next_epoch    bigint      not null,
    at            timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, history_epoch)
);
call resolver.protect('resolver.history_parting');
grant select on resolver.history_parting to resolver_app;

-- One figure that every commit raises, of every tenant; and no more than that.
create function resolver.positions_of_epoch(p_epoch bigint) returns bigint
language sql stable security definer set search_path = pg_catalog
begin atomic
    select coalesce(sum(c.position), 0)::bigint from resolver.stream_cursor c where c.history_epoch = p_epoch;
end;

-- What fencing touches, across tenants: by the role itself, not by its member, the owner (0015).
grant update (status) on resolver.stream_cursor to resolver_access;
create policy any_tenant_fences on resolver.stream_cursor for update to resolver_access
using (current_user = 'resolver_access');
grant select (tenant_id, catalog_id, history_epoch, ended_at), update (ended_at) on resolver.stream_lease
to resolver_access;
create policy any_tenant on resolver.stream_lease for select to resolver_access
using (current_user = 'resolver_access');
create policy any_tenant_fences on resolver.stream_lease for update to resolver_access
using (current_user = 'resolver_access');
grant select (tenant_id, catalog_id, history_epoch, status), update (status, code) on resolver.export
to resolver_access;
create policy any_tenant on resolver.export for select to resolver_access
using (current_user = 'resolver_access');
create policy any_tenant_fences on resolver.export for update to resolver_access
using (current_user = 'resolver_access');
grant insert on resolver.history_parting to resolver_access;
grant select (tenant_id, catalog_id, history_epoch) on resolver.history_parting to resolver_access;
create policy any_tenant_parts on resolver.history_parting for insert to resolver_access
with check (current_user = 'resolver_access');
create policy any_tenant on resolver.history_parting for select to resolver_access
using (current_user = 'resolver_access');

-- Ends every stream, lease and export of an epoch before this one, and notes where. Again, it changes nothing. Only who
-- may become the owner may call it: no server can fence a history.
create function resolver.fence_before(p_epoch bigint)
returns table (tenant_id text, catalog_id text, history_epoch bigint, position_reached bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update resolver.stream_lease l set ended_at = clock_timestamp()
     where l.history_epoch < p_epoch and l.ended_at is null;
    update resolver.export e set status = 'failed', code = 'EPOCH_FENCED'
     where e.history_epoch < p_epoch and e.status = 'running';
    return query
    with ended as (
        update resolver.stream_cursor c set status = 'fenced'
         where c.history_epoch < p_epoch and c.status = 'open'
        returning c.tenant_id, c.catalog_id, c.history_epoch, c.position
    ), noted as (
        insert into resolver.history_parting (tenant_id, catalog_id, history_epoch, position, next_epoch)
        select e.tenant_id, e.catalog_id, e.history_epoch, e.position, p_epoch from ended e
        on conflict do nothing
    )
    select e.tenant_id, e.catalog_id, e.history_epoch, e.position from ended e order by 1, 2, 3;
end $$;

alter function resolver.positions_of_epoch(bigint) owner to resolver_access;
alter function resolver.fence_before(bigint) owner to resolver_access;
set local role resolver_access;
revoke all on function resolver.positions_of_epoch(bigint) from public;
grant execute on function resolver.positions_of_epoch(bigint) to resolver_app, prw_owner;
revoke all on function resolver.fence_before(bigint) from public;
grant execute on function resolver.fence_before(bigint) to prw_owner;

reset role;
