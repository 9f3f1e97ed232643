-- The schema, and what every table of it is protected by.
-- Every migration runs as the owner role, which owns the database and all that is in it.

create schema product;

grant usage on schema product to product_app;

-- After a commit the setting reads as an empty string: that is no tenant.
create function product.current_tenant() returns text
    language sql stable parallel safe
    as $$ select nullif(current_setting('app.tenant_id', true), '') $$;

create procedure product.protect(target regclass)
    language plpgsql
    as $$
begin
    execute format('alter table %s enable row level security', target);
    execute format('alter table %s force row level security', target);
    execute format(
        'create policy tenant on %s using (tenant_id = product.current_tenant()) '
        'with check (tenant_id = product.current_tenant())',
        target);
end
$$;

revoke all on procedure product.protect(regclass) from public;
