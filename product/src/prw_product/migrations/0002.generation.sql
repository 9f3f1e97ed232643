-- Generations of the projection, the pointer that readers go through, and each generation's tables.

create table product.generation (
    tenant_id text not null,
    catalog_id text not null,
    generation integer not null check (generation >= 1),
    history_epoch bigint not null check (history_epoch >= 1),
    status text not null check (status in ('live', 'shadow', 'retired')),
    created_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, generation),
    unique (tenant_id, catalog_id, generation, history_epoch)
);
call product.protect('product.generation');
grant select, insert, update on product.generation to product_app;

-- One row a catalogue: every public query reads it in the statement that chooses the schema.
create table product.serving_generation (
    tenant_id text not null,
    catalog_id text not null,
    generation integer not null,
    history_epoch bigint not null,
    switched_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id),
    foreign key (tenant_id, catalog_id, generation, history_epoch)
        references product.generation (tenant_id, catalog_id, generation, history_epoch)
);
call product.protect('product.serving_generation');
grant select, insert, update on product.serving_generation to product_app;

-- The server's role may not make schemas, so the owner's function makes each generation's.
-- It asks for one number and nothing else; making a generation again changes nothing.
create function product.create_generation(number integer) returns void
    language plpgsql
    security definer
    set search_path = pg_catalog, pg_temp
    as $$
declare
    place text := 'projection_' || number;
    made text;
begin
    if number is null or number < 1 then
        raise exception 'a generation is numbered from 1' using errcode = '22023';
    end if;
    perform pg_advisory_xact_lock(hashtext('product.create_generation'));
    if to_regnamespace(place) is not null then
        return;
    end if;
    execute format('create schema %I', place);
    execute format('grant usage on schema %I to product_app', place);

    -- What has been applied: the newest revision of every aggregate.
    execute format($ddl$
        create table %I.applied_revision (
            tenant_id text not null,
            catalog_id text not null,
            aggregate_type text not null,
            aggregate_id text not null,
            revision bigint not null check (revision >= 1),
            primary key (tenant_id, catalog_id, aggregate_type, aggregate_id)
        )$ddl$, place);

    -- States by revision, since a release names the very revision that is public.
    execute format($ddl$
        create table %I.item_revision (
            tenant_id text not null,
            catalog_id text not null,
            item_id text not null,
            revision bigint not null,
            class_id text not null,
            status text not null,
            successors jsonb not null,
            title text not null,
            attributes jsonb not null,
            identity_keys jsonb not null,
            primary key (tenant_id, catalog_id, item_id, revision)
        )$ddl$, place);
    execute format($ddl$
        create table %I.mapping_revision (
            tenant_id text not null,
            catalog_id text not null,
            listing_id text not null,
            revision bigint not null,
            item_id text not null,
            item_revision bigint not null,
            status text not null,
            source_id text not null,
            listing_key text not null,
            merchant_id text not null,
            url text not null,
            title text not null,
            observed_at timestamptz,
            primary key (tenant_id, catalog_id, listing_id, revision)
        )$ddl$, place);

    -- States of which only the newest applied one is asked for.
    execute format($ddl$
        create table %I.merchant (
            tenant_id text not null,
            catalog_id text not null,
            merchant_id text not null,
            revision bigint not null,
            name text not null,
            source_id text not null,
            primary key (tenant_id, catalog_id, merchant_id)
        )$ddl$, place);
    execute format($ddl$
        create table %I.source (
            tenant_id text not null,
            catalog_id text not null,
            source_id text not null,
            revision bigint not null,
            name text not null,
            primary key (tenant_id, catalog_id, source_id)
        )$ddl$, place);
    execute format($ddl$
        create table %I.inventory (
            tenant_id text not null,
            catalog_id text not null,
            listing_id text not null,
            revision bigint not null,
            price_amount numeric,
            price_currency text,
            availability text not null,
            observed_at timestamptz,
            primary key (tenant_id, catalog_id, listing_id),
            check ((price_amount is null) = (price_currency is null))
        )$ddl$, place);

    -- What is public. A release is a row here, with the fields that it releases.
    execute format($ddl$
        create table %I.public_item (
            tenant_id text not null,
            catalog_id text not null,
            item_id text not null,
            release_id text not null,
            class_id text not null,
            title text not null,
            attributes jsonb not null,
            published_revision bigint not null,
            publication_revision bigint not null,
            release_position bigint not null,
            primary key (tenant_id, catalog_id, item_id),
            unique (tenant_id, catalog_id, release_id)
        )$ddl$, place);
    execute format(
        'create index on %I.public_item (tenant_id, catalog_id, class_id, item_id)', place);
    execute format($ddl$
        create table %I.public_attribute (
            tenant_id text not null,
            catalog_id text not null,
            item_id text not null,
            attribute_key text not null,
            value text not null,
            unit text not null,
            primary key (tenant_id, catalog_id, item_id, attribute_key)
        )$ddl$, place);
    execute format(
        'create index on %I.public_attribute '
        '(tenant_id, catalog_id, attribute_key, value, unit, item_id)', place);
    -- The newest mapping revision at which any release, overtaken ones included, has named a
    -- listing: what once went public never goes back to what it was before.
    execute format($ddl$
        create table %I.released_mapping (
            tenant_id text not null,
            catalog_id text not null,
            listing_id text not null,
            mapping_revision bigint not null,
            primary key (tenant_id, catalog_id, listing_id)
        )$ddl$, place);
    -- Every item's newest release names its listings; of two that name one listing,
    -- public_listing has the one with the greater mapping revision.
    execute format($ddl$
        create table %I.released_listing (
            tenant_id text not null,
            catalog_id text not null,
            item_id text not null,
            listing_id text not null,
            mapping_revision bigint not null,
            release_position bigint not null,
            primary key (tenant_id, catalog_id, item_id, listing_id)
        )$ddl$, place);
    execute format(
        'create index on %I.released_listing (tenant_id, catalog_id, listing_id)', place);
    execute format($ddl$
        create table %I.public_listing (
            tenant_id text not null,
            catalog_id text not null,
            listing_id text not null,
            item_id text not null,
            mapping_revision bigint not null,
            merchant_id text not null,
            url text not null,
            title text not null,
            primary key (tenant_id, catalog_id, listing_id)
        )$ddl$, place);
    execute format(
        'create index on %I.public_listing (tenant_id, catalog_id, item_id)', place);
    execute format(
        'create index on %I.public_listing (tenant_id, catalog_id, merchant_id)', place);

    -- A released listing with who sells it and what it cost when last observed: the newest applied
    -- states, since neither says which item a listing is.
    execute format($ddl$
        create view %1$I.public_offer with (security_invoker = true) as
        select listing.tenant_id, listing.catalog_id, listing.item_id, listing.listing_id,
            listing.merchant_id, coalesce(merchant.name, '') as merchant_name, listing.title,
            listing.url, seen.price_amount::text as price_amount, seen.price_currency,
            coalesce(seen.availability, '') as availability, seen.observed_at
        from %1$I.public_listing as listing
        left join %1$I.merchant
            on merchant.tenant_id = listing.tenant_id
            and merchant.catalog_id = listing.catalog_id
            and merchant.merchant_id = listing.merchant_id
        left join %1$I.inventory as seen
            on seen.tenant_id = listing.tenant_id and seen.catalog_id = listing.catalog_id
            and seen.listing_id = listing.listing_id
        $ddl$, place);
    execute format('grant select on %I.public_offer to product_app', place);

    for made in select relation.oid::regclass::text
        from pg_class relation
        where relation.relnamespace = to_regnamespace(place) and relation.relkind = 'r'
    loop
        call product.protect(made::regclass);
        execute format('grant select, insert on %s to product_app', made::regclass);
    end loop;
    execute format('grant update on %1$I.applied_revision, %1$I.merchant, %1$I.source, '
        '%1$I.inventory, %1$I.public_item, %1$I.released_mapping to product_app', place);
    execute format('grant delete on %1$I.public_attribute, %1$I.released_listing, '
        '%1$I.public_listing to product_app', place);
end
$$;

revoke all on function product.create_generation(integer) from public;
grant execute on function product.create_generation(integer) to product_app;
