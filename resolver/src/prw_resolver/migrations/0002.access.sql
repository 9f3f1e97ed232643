-- Who is calling: tenants, catalogues, sources, and the callers that an operator provisioned.
-- depends: 0001.schema

create table resolver.tenant (
    tenant_id text primary key check (tenant_id ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'),
    name text not null,
    created_at timestamptz not null default clock_timestamp()
);

create table resolver.catalog (
    tenant_id text not null references resolver.tenant,
    catalog_id text not null check (catalog_id ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'),
    name text not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id)
);

create table resolver.source (
    tenant_id text not null,
    source_id text not null check (source_id ~ '^[A-Za-z0-9_.-]{1,128}$'),
    catalog_id text not null,
    name text not null,
    -- Whether a record of it may make a new item by rule.
    trusted_to_introduce boolean not null default false,
    -- Market hints: locale (BCP 47) and currency (ISO 4217).
    settings jsonb not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, source_id),
    -- What captures refer to: a source never changes its catalogue.
    unique (tenant_id, catalog_id, source_id),
    foreign key (tenant_id, catalog_id) references resolver.catalog
);

-- A machine client. The instance is stable, its clients rotate.
create table resolver.binding (
    tenant_id text not null,
    client_id text not null,
    catalog_id text not null,
    worker_id text,
    instance_id text not null,
    scopes text [] not null check (cardinality(scopes) > 0),
    status text not null default 'active' check (status in ('active', 'superseded', 'revoked')),
    created_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    primary key (tenant_id, client_id),
    foreign key (tenant_id, catalog_id) references resolver.catalog
);

create unique index binding_client on resolver.binding (client_id);
create unique index binding_active on resolver.binding (tenant_id, instance_id) where status = 'active';

create table resolver.source_grant (
    tenant_id text not null,
    client_id text not null,
    source_id text not null,
    primary key (tenant_id, client_id, source_id),
    foreign key (tenant_id, client_id) references resolver.binding,
    foreign key (tenant_id, source_id) references resolver.source
);

-- A person's standing in a tenant, with the client that their token was signed for.
create table resolver.person (
    tenant_id text not null,
    client_id text not null,
    catalog_id text not null,
    subject text not null,
    role text not null check (role in ('viewer', 'reviewer', 'operator_admin')),
    status text not null default 'active' check (status in ('active', 'superseded', 'revoked')),
    created_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    primary key (tenant_id, client_id),
    foreign key (tenant_id, catalog_id) references resolver.catalog
);

create unique index person_client on resolver.person (client_id);
create unique index person_active on resolver.person (tenant_id, subject) where status = 'active';
create index source_by_id on resolver.source (source_id);

call resolver.protect('resolver.tenant');
call resolver.protect('resolver.catalog');
call resolver.protect('resolver.source');
call resolver.protect('resolver.binding');
call resolver.protect('resolver.source_grant');
call resolver.protect('resolver.person');

grant select, insert, update on resolver.tenant, resolver.catalog to resolver_app;
grant select, insert, update on resolver.source to resolver_app;
grant select, insert on resolver.binding, resolver.source_grant, resolver.person to resolver_app;
grant update (status, ended_at) on resolver.binding, resolver.person to resolver_app;

-- The two questions that must be asked before, or across, tenants have functions of their own; the role that owns
-- them sees these tables by an explicit policy, and nobody else does.
grant select on resolver.binding, resolver.source_grant, resolver.person, resolver.source to resolver_access;
create policy any_tenant on resolver.binding for select to resolver_access using (true);
create policy any_tenant on resolver.source_grant for select to resolver_access using (true);
create policy any_tenant on resolver.person for select to resolver_access using (true);
create policy any_tenant on resolver.source for select to resolver_access using (true);

-- Who a client is; asked at every call, so that a revocation counts at the next one.
create function resolver.find_caller(client text)
returns table (
    kind text, tenant_id text, catalog_id text, subject text, worker_id text,
    sources text [], scopes text [], role text, status text
)
language sql stable security definer set search_path = pg_catalog
begin atomic
select 'machine', b.tenant_id, b.catalog_id, b.instance_id, b.worker_id,
    array(
        select g.source_id from resolver.source_grant as g
        where g.tenant_id = b.tenant_id and g.client_id = b.client_id
    ),
    b.scopes, null::text, b.status
from resolver.binding as b
where b.client_id = client
union all
select 'person', p.tenant_id, p.catalog_id, p.subject, null, '{}'::text [], '{}'::text [], p.role, p.status
from resolver.person as p
where p.client_id = client;
end;

-- Whether a source of that id is another tenant's; says nothing else about it.
create function resolver.source_is_elsewhere(source text) returns boolean
language sql stable security definer set search_path = pg_catalog
begin atomic
select not exists (
    select from resolver.source as own where own.source_id = source and own.tenant_id = resolver.current_tenant()
) and exists (select from resolver.source as other where other.source_id = source);
end;

alter function resolver.find_caller(text) owner to resolver_access;
alter function resolver.source_is_elsewhere(text) owner to resolver_access;

set local role resolver_access;
revoke all on function resolver.find_caller(text), resolver.source_is_elsewhere(text) from public;
grant execute on function resolver.find_caller(text), resolver.source_is_elsewhere(text) to resolver_app;
set local role prw_owner;
