-- Vocabulary: classes, attribute definitions by version, identity generations. What is published never changes.
-- depends: 0004.jobs

set local role prw_owner;

-- A class's place in the tree is fixed for ever: accepted items rest on it.
create table resolver.class_definition (
    tenant_id text not null,
    catalog_id text not null,
    class_id text not null,
    parent_id text,
    title text not null,
    primary key (tenant_id, catalog_id, class_id),
    foreign key (tenant_id, catalog_id) references resolver.catalog,
    foreign key (tenant_id, catalog_id, parent_id) references resolver.class_definition
);

-- How records of a class are told.
create table resolver.class_recognition (
    tenant_id text not null,
    catalog_id text not null,
    class_id text not null,
    version integer not null check (version > 0),
    definition jsonb not null,
    published_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, class_id, version),
    foreign key (tenant_id, catalog_id, class_id) references resolver.class_definition
);

create table resolver.attribute_definition (
    tenant_id text not null,
    catalog_id text not null,
    attribute_key text not null,
    version integer not null check (version > 0),
    value_type text not null,
    unit text not null,
    -- Classes it belongs to; those below inherit it (INV-07).
    applies_to text [] not null check (cardinality(applies_to) > 0),
    is_public boolean not null,
    definition jsonb not null,
    published_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, attribute_key, version),
    foreign key (tenant_id, catalog_id) references resolver.catalog
);

-- The identity rules of every class, numbered. One generation serves lookups.
create table resolver.identity_generation (
    tenant_id text not null,
    catalog_id text not null,
    generation integer not null check (generation > 0),
    status text not null check (status in ('candidate', 'active', 'retired')),
    rules jsonb not null,
    published_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, generation),
    foreign key (tenant_id, catalog_id) references resolver.catalog
);

create unique index identity_generation_active
on resolver.identity_generation (tenant_id, catalog_id) where status = 'active';

call resolver.protect('resolver.class_definition');
call resolver.protect('resolver.class_recognition');
call resolver.protect('resolver.attribute_definition');
call resolver.protect('resolver.identity_generation');

grant select, insert on resolver.class_definition, resolver.class_recognition, resolver.attribute_definition,
    resolver.identity_generation to resolver_app;
-- Only activation moves a generation, and only its status.
grant update (status) on resolver.identity_generation to resolver_app;

-- A class and all above it.
create function resolver.class_lineage(p_tenant text, p_catalog text, p_class text) returns setof text
language sql stable
begin atomic
with recursive above as (
    select c.class_id, c.parent_id from resolver.class_definition as c
    where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.class_id = p_class
    union all
    select c.class_id, c.parent_id from resolver.class_definition as c
    inner join above on c.class_id = above.parent_id
    where c.tenant_id = p_tenant and c.catalog_id = p_catalog
)

select above.class_id from above;
end;

-- INV-07: whether that version of an attribute belongs to a class or to one that it inherits from.
create function resolver.attribute_applies(
    p_tenant text, p_catalog text, p_class text, p_attribute text, p_version integer
) returns boolean
language sql stable
begin atomic
select exists (
    select from resolver.attribute_definition as a
    where
        a.tenant_id = p_tenant and a.catalog_id = p_catalog
        and a.attribute_key = p_attribute and a.version = p_version
        and a.applies_to && array(select lineage from resolver.class_lineage(p_tenant, p_catalog, p_class) as lineage)
);
end;

reset role;
