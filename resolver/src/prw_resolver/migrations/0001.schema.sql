-- The schema, who may use it, and the two things that every tenant table rests on.
-- depends:

create schema if not exists resolver;

grant usage on schema resolver to resolver_app, resolver_relay;
-- Owns the few functions that must look across tenants; nobody can log in as it. A function's owner needs CREATE.
grant usage, create on schema resolver to resolver_access;

-- The tenant that the present transaction works for; null where it was given none.
create function resolver.current_tenant() returns text
language sql stable parallel safe
return nullif(current_setting('app.tenant_id', true), '');

-- Puts a table under row-level security by tenant, for its owner too.
create procedure resolver.protect(relation regclass)
language plpgsql as $$
begin
    execute format('alter table %s enable row level security', relation);
    execute format('alter table %s force row level security', relation);
    execute format(
        'create policy by_tenant on %s using (tenant_id = resolver.current_tenant())'
        ' with check (tenant_id = resolver.current_tenant())',
        relation
    );
end
$$;

revoke all on procedure resolver.protect(regclass) from public;
