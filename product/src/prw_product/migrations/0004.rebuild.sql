-- Rebuilding: a shadow generation is loaded without keys and security, finished, and swapped in; an old one is dropped.
-- depends: 0003.apply

create sequence product.generation_number;

-- The keys of a shadow's tables as they will be made again; of every tenant, since its number is the schema's.
create table product.shadow_key (
    number integer not null,
    ordinal integer not null,
    statement text not null,
    primary key (number, ordinal)
);

-- How each rebuild went; the newest one of a catalogue is what status shows.
create table product.rebuild (
    tenant_id text not null,
    catalog_id text not null,
    generation integer not null,
    history_epoch bigint not null,
    export_id text not null,
    -- The position of the export.
    position bigint not null,
    phase text not null
        check (phase in ('loading', 'finishing', 'catching_up', 'served', 'failed')),
    -- The position that was cut over at.
    served_position bigint,
    message text not null default '',
    started_at timestamptz not null default clock_timestamp(),
    told_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, generation)
);
call product.protect('product.rebuild');
grant select, insert, update on product.rebuild to product_app;

-- Makes a generation of a number that was never used, for loading: the tables that create_generation makes, without
-- keys (they are built once, after the load) and without row-level security (which refuses COPY). Nobody reads it: no
-- pointer names it before it is finished. Returns its number.
create function product.make_shadow() returns integer
    language plpgsql
    security definer
    set search_path = pg_catalog, pg_temp
    as $$
declare
    number integer;
    place text;
    made record;
begin
    loop
        number := nextval('product.generation_number');
        place := 'projection_' || number;
        exit when to_regnamespace(place) is null;
    end loop;
    perform product.create_generation(number);
    insert into product.shadow_key (number, ordinal, statement)
    select number, row_number() over (order by kind, relation, name), statement
    from (
        select 1 as kind, c.conrelid::regclass::text as relation, c.conname as name,
            format('alter table %s add constraint %I %s', c.conrelid::regclass, c.conname,
                pg_get_constraintdef(c.oid)) as statement
        from pg_constraint as c
        where c.connamespace = to_regnamespace(place) and c.contype in ('p', 'u')
        union all
        select 2, i.indrelid::regclass::text, i.indexrelid::regclass::text,
            pg_get_indexdef(i.indexrelid)
        from pg_index as i
        join pg_class as r on r.oid = i.indexrelid
        where r.relnamespace = to_regnamespace(place)
            and not exists (select from pg_constraint as k where k.conindid = i.indexrelid)
    ) as keys;
    for made in
        select c.conrelid::regclass as relation, c.conname as name from pg_constraint as c
        where c.connamespace = to_regnamespace(place) and c.contype in ('p', 'u')
    loop
        execute format('alter table %s drop constraint %I', made.relation, made.name);
    end loop;
    for made in
        select i.indexrelid::regclass as name from pg_index as i
        join pg_class as r on r.oid = i.indexrelid
        where r.relnamespace = to_regnamespace(place)
    loop
        execute format('drop index %s', made.name);
    end loop;
    for made in
        select r.oid::regclass as relation from pg_class as r
        where r.relnamespace = to_regnamespace(place) and r.relkind = 'r'
    loop
        execute format('alter table %s no force row level security', made.relation);
        execute format('alter table %s disable row level security', made.relation);
    end loop;
    return number;
end
$$;

-- Gives a shadow its keys and its security back; then it is what create_generation makes. Once only.
create function product.finish_shadow(shadow integer) returns void
    language plpgsql
    security definer
    set search_path = pg_catalog, pg_temp
    as $$
declare
    made record;
begin
    for made in
        select k.statement from product.shadow_key as k where k.number = shadow order by k.ordinal
    loop
        execute made.statement;
    end loop;
    if not found then
        raise exception 'generation % is not a shadow', shadow using errcode = '22023';
    end if;
    delete from product.shadow_key as k where k.number = shadow;
    for made in
        select r.oid::regclass as relation from pg_class as r
        where r.relnamespace = to_regnamespace('projection_' || shadow) and r.relkind = 'r'
    loop
        execute format('alter table %s enable row level security', made.relation);
        execute format('alter table %s force row level security', made.relation);
        execute format('analyze %s', made.relation);
    end loop;
end
$$;

-- Takes away what a retired generation of the transaction's tenant holds. One that was rebuilt has a schema of its own,
-- which goes; the first ones share theirs with other tenants and catalogues, and only their rows go.
create function product.drop_generation(catalog text, dropped integer) returns void
    language plpgsql
    security definer
    set search_path = pg_catalog, pg_temp
    as $$
declare
    tenant text := product.current_tenant();
    made record;
begin
    if not exists (
        select from product.generation as g
        where g.tenant_id = tenant and g.catalog_id = catalog and g.generation = dropped
            and g.status = 'retired'
    ) then
        raise exception 'generation % is not a retired one of this catalogue', dropped
            using errcode = '22023';
    end if;
    for made in
        select r.oid::regclass as relation from pg_class as r
        where r.relname in ('inbox', 'parked', 'parked_need', 'dead_letter', 'progress')
            and r.relnamespace = 'product'::regnamespace and r.relkind = 'r'
    loop
        execute format(
            'delete from %s where tenant_id = $1 and catalog_id = $2 and generation = $3',
            made.relation) using tenant, catalog, dropped;
    end loop;
    if exists (
        select from product.rebuild as r
        where r.tenant_id = tenant and r.catalog_id = catalog and r.generation = dropped
    ) then
        delete from product.shadow_key as k where k.number = dropped;
        execute format('drop schema if exists %I cascade', 'projection_' || dropped);
        return;
    end if;
    for made in
        select r.oid::regclass as relation from pg_class as r
        where r.relnamespace = to_regnamespace('projection_' || dropped) and r.relkind = 'r'
    loop
        execute format('delete from %s where tenant_id = $1 and catalog_id = $2', made.relation)
            using tenant, catalog;
    end loop;
end
$$;

revoke all on function product.make_shadow() from public;
revoke all on function product.finish_shadow(integer) from public;
revoke all on function product.drop_generation(text, integer) from public;
grant execute on function product.make_shadow() to product_app;
grant execute on function product.finish_shadow(integer) to product_app;
grant execute on function product.drop_generation(text, integer) to product_app;
