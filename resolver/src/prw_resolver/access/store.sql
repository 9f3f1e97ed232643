-- name: find_caller
-- Who a client is, in whatever tenant; one indexed look-up.
select * from resolver.find_caller(%(client_id)s);

-- name: source_is_elsewhere
-- Whether a source of that id is another tenant's and not the present one's.
select resolver.source_is_elsewhere(%(source_id)s) as elsewhere;

-- name: put_tenant
-- Record a tenant, or give it another name.
insert into resolver.tenant (tenant_id, name) values (%(tenant_id)s, %(name)s)
on conflict (tenant_id) do update set name = excluded.name;

-- name: ensure_tenant
-- Record a tenant under its own id, unless it is there.
insert into resolver.tenant (tenant_id, name) values (%(tenant_id)s, %(tenant_id)s)
on conflict (tenant_id) do nothing;

-- name: put_catalog
-- Record a catalogue, or give it another name.
insert into resolver.catalog (tenant_id, catalog_id, name) values (%(tenant_id)s, %(catalog_id)s, %(name)s)
on conflict (tenant_id, catalog_id) do update set name = excluded.name;

-- name: put_source
-- Record a source or change what is said about it; nothing comes back where it belongs to another catalogue.
insert into resolver.source as held (tenant_id, source_id, catalog_id, name, trusted_to_introduce, settings)
values (%(tenant_id)s, %(source_id)s, %(catalog_id)s, %(name)s, %(trusted_to_introduce)s, %(settings)s)
on conflict (tenant_id, source_id) do update
set name = excluded.name, trusted_to_introduce = excluded.trusted_to_introduce,
    settings = excluded.settings, updated_at = clock_timestamp()
where held.catalog_id = excluded.catalog_id
returning source_id;

-- name: find_source
-- One source of the tenant.
select tenant_id, catalog_id, source_id, name, trusted_to_introduce, settings
from resolver.source where tenant_id = %(tenant_id)s and source_id = %(source_id)s;

-- name: catalog_sources
-- The ids of a catalogue's sources among those named.
select source_id from resolver.source
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and source_id = any(%(sources)s);

-- name: supersede_clients
-- End the clients that an instance had; the new one takes their place.
update resolver.binding set status = 'superseded', ended_at = clock_timestamp()
where tenant_id = %(tenant_id)s and instance_id = %(instance_id)s and status = 'active';

-- name: add_binding
-- Record a machine's new client.
insert into resolver.binding (tenant_id, client_id, catalog_id, worker_id, instance_id, scopes)
values (%(tenant_id)s, %(client_id)s, %(catalog_id)s, %(worker_id)s, %(instance_id)s, %(scopes)s);

-- name: add_grants
-- Grant sources to a client.
insert into resolver.source_grant (tenant_id, client_id, source_id)
select %(tenant_id)s, %(client_id)s, unnest(%(sources)s::text []);

-- name: supersede_persons
-- End the clients that a person had.
update resolver.person set status = 'superseded', ended_at = clock_timestamp()
where tenant_id = %(tenant_id)s and subject = %(subject)s and status = 'active';

-- name: add_person
-- Record a person's standing with the client of their token.
insert into resolver.person (tenant_id, client_id, catalog_id, subject, role)
values (%(tenant_id)s, %(client_id)s, %(catalog_id)s, %(subject)s, %(role)s);

-- name: revoke_clients
-- End the active clients of an instance or person, or one client by its id.
with machines as (
    update resolver.binding set status = 'revoked', ended_at = clock_timestamp()
    where tenant_id = %(tenant_id)s and status = 'active' and %(name)s in (client_id, instance_id)
    returning client_id
),
persons as (
    update resolver.person set status = 'revoked', ended_at = clock_timestamp()
    where tenant_id = %(tenant_id)s and status = 'active' and %(name)s in (client_id, subject)
    returning client_id
)
select client_id from machines union all select client_id from persons;
