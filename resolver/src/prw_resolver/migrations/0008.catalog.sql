-- Catalog: the accepted state. Each fact names its decision and its evidence (INV-05); each of its revisions is kept.
-- depends: 0007.review

set local role prw_owner;

create table resolver.catalog_revision (
    tenant_id      text        not null,
    catalog_id     text        not null,
    aggregate_type text        not null,
    aggregate_id   text        not null,
    revision       bigint      not null check (revision >= 1),
    decision_id    text        not null,
    evidence       jsonb       not null check (jsonb_typeof(evidence) = 'array' and jsonb_array_length(evidence) > 0),
    state          jsonb       not null,
    recorded_at    timestamptz not null,
    primary key (tenant_id, catalog_id, aggregate_type, aggregate_id, revision),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id)
);

create table resolver.catalog_item (
    tenant_id   text   not null,
    catalog_id  text   not null,
    item_id     text   not null,
    class_id    text   not null,
    status      text   not null check (status in ('active', 'split', 'merged', 'retired')),
    revision    bigint not null check (revision >= 1),
    title       text   not null,
    successors  text[] not null default '{}',
    decision_id text   not null,
    evidence    jsonb  not null check (jsonb_array_length(evidence) > 0),
    primary key (tenant_id, catalog_id, item_id),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id),
    check ((status in ('split', 'merged')) = (cardinality(successors) > 0))
);

create table resolver.catalog_item_attribute (
    tenant_id          text    not null,
    catalog_id         text    not null,
    item_id            text    not null,
    attribute_key      text    not null,
    definition_version integer not null,
    value              text    not null check (value <> ''),
    unit               text    not null,
    basis              text    not null check (basis in ('stated', 'hint', 'default', 'corrected')),
    decision_id        text    not null,
    primary key (tenant_id, catalog_id, item_id, attribute_key),
    foreign key (tenant_id, catalog_id, item_id) references resolver.catalog_item (tenant_id, catalog_id, item_id),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id),
    foreign key (tenant_id, catalog_id, attribute_key, definition_version)
        references resolver.attribute_definition (tenant_id, catalog_id, attribute_key, version)
);

-- INV-02: one active item for each key within tenant, catalog, class and generation. Candidates may collide.
create table resolver.catalog_item_key (
    tenant_id     text    not null,
    catalog_id    text    not null,
    class_id      text    not null,
    generation    integer not null,
    identity_hash text    not null,
    item_id       text    not null,
    status        text    not null check (status in ('candidate', 'ready', 'active', 'retired')),
    rule          text    not null,
    canonical     text    not null,
    decision_id   text    not null,
    primary key (tenant_id, catalog_id, class_id, generation, identity_hash, item_id),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id),
    foreign key (tenant_id, catalog_id, item_id) references resolver.catalog_item (tenant_id, catalog_id, item_id)
);
create unique index catalog_item_key_owner
    on resolver.catalog_item_key (tenant_id, catalog_id, class_id, generation, identity_hash)
    where status in ('ready', 'active');
create index catalog_item_key_item on resolver.catalog_item_key (tenant_id, catalog_id, item_id);

create table resolver.merchant (
    tenant_id   text   not null,
    catalog_id  text   not null,
    merchant_id text   not null,
    source_id   text   not null,
    name        text   not null check (name <> ''),
    revision    bigint not null check (revision >= 1),
    decision_id text   not null,
    evidence    jsonb  not null check (jsonb_array_length(evidence) > 0),
    primary key (tenant_id, catalog_id, merchant_id),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id)
);

-- One row a listing, so that a listing never has two active mappings.
create table resolver.listing_mapping (
    tenant_id     text        not null,
    catalog_id    text        not null,
    listing_id    text        not null,
    revision      bigint      not null check (revision >= 1),
    item_id       text        not null,
    item_revision bigint      not null,
    status        text        not null check (status in ('active', 'retracted')),
    source_id     text        not null,
    listing_key   text        not null,
    merchant_id   text        not null,
    url           text        not null,
    title         text        not null,
    observed_at   timestamptz not null,
    decision_id   text        not null,
    evidence      jsonb       not null check (jsonb_array_length(evidence) > 0),
    primary key (tenant_id, catalog_id, listing_id),
    foreign key (tenant_id, catalog_id, item_id) references resolver.catalog_item (tenant_id, catalog_id, item_id),
    foreign key (tenant_id, catalog_id, merchant_id)
        references resolver.merchant (tenant_id, catalog_id, merchant_id),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id)
);
create index listing_mapping_item on resolver.listing_mapping (tenant_id, catalog_id, item_id);
-- In byte order, so that the listings of one target's page are one range of it.
create index listing_mapping_source
    on resolver.listing_mapping (tenant_id, catalog_id, source_id, listing_key collate "C");

create table resolver.inventory_observation (
    tenant_id    text           not null,
    catalog_id   text           not null,
    listing_id   text           not null,
    revision     bigint         not null check (revision >= 1),
    amount       numeric(20, 4) check (amount >= 0),
    currency     text           check (currency ~ '^[A-Z]{3}$'),
    availability text           not null,
    observed_at  timestamptz    not null,
    decision_id  text           not null,
    evidence     jsonb          not null check (jsonb_array_length(evidence) > 0),
    primary key (tenant_id, catalog_id, listing_id),
    foreign key (tenant_id, catalog_id, listing_id)
        references resolver.listing_mapping (tenant_id, catalog_id, listing_id),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id),
    check ((amount is null) = (currency is null))
);

create table resolver.release (
    tenant_id     text   not null,
    catalog_id    text   not null,
    release_id    text   not null,
    item_id       text   not null,
    item_revision bigint not null,
    revision      bigint not null check (revision >= 1),
    content       jsonb  not null,
    decision_id   text   not null,
    evidence      jsonb  not null check (jsonb_array_length(evidence) > 0),
    primary key (tenant_id, catalog_id, release_id),
    unique (tenant_id, catalog_id, item_id),
    foreign key (tenant_id, catalog_id, item_id) references resolver.catalog_item (tenant_id, catalog_id, item_id),
    foreign key (tenant_id, decision_id) references resolver.decision (tenant_id, decision_id)
);

-- Items whose public face may have to change.
create table resolver.release_due (
    tenant_id  text   not null,
    catalog_id text   not null,
    item_id    text   not null,
    touched    bigint not null default nextval('resolver.touch'),
    primary key (tenant_id, catalog_id, item_id)
);

call resolver.protect('resolver.catalog_revision');
call resolver.protect('resolver.catalog_item');
call resolver.protect('resolver.catalog_item_attribute');
call resolver.protect('resolver.catalog_item_key');
call resolver.protect('resolver.merchant');
call resolver.protect('resolver.listing_mapping');
call resolver.protect('resolver.inventory_observation');
call resolver.protect('resolver.release');
call resolver.protect('resolver.release_due');
-- INV-08: nothing accepted is ever deleted, and history is not even updated.
grant select, insert on resolver.catalog_revision to resolver_app;
grant select, insert, update on resolver.catalog_item_attribute, resolver.catalog_item_key, resolver.merchant,
    resolver.listing_mapping, resolver.inventory_observation, resolver.release to resolver_app;
-- An item never changes its class: its attributes and keys were accepted for that class (INV-07).
grant select, insert on resolver.catalog_item to resolver_app;
grant update (status, revision, title, successors, decision_id, evidence) on resolver.catalog_item to resolver_app;
grant select, insert, update, delete on resolver.release_due to resolver_app;

create function resolver.catalog_stale(p_fact jsonb) returns void language plpgsql as $$
begin
    raise exception 'STALE_FACT_REVISION' using errcode = 'PRW01',
        detail = format('%s %s is not before revision %s', p_fact ->> 'type', p_fact ->> 'id', p_fact ->> 'revision');
end $$;

create function resolver.catalog_touch_release(p_tenant text, p_catalog text, p_item text) returns void
language sql as $$
    insert into resolver.release_due (tenant_id, catalog_id, item_id) values (p_tenant, p_catalog, p_item)
    on conflict (tenant_id, catalog_id, item_id) do update set touched = excluded.touched;
$$;

-- An item with the attributes and the keys that are new with this revision.
create function resolver.catalog_apply_item(p_tenant text, p_catalog text, p_decision text, p_fact jsonb) returns void
language plpgsql as $$
declare
    v_row      jsonb := p_fact -> 'row';
    v_item     text := p_fact ->> 'id';
    v_revision bigint := (p_fact ->> 'revision')::bigint;
begin
    if v_revision = 1 then
        insert into resolver.catalog_item (tenant_id, catalog_id, item_id, class_id, status, revision, title,
            successors, decision_id, evidence)
        values (p_tenant, p_catalog, v_item, v_row ->> 'class_id', v_row ->> 'status', 1, v_row ->> 'title',
            array(select jsonb_array_elements_text(v_row -> 'successors')), p_decision, p_fact -> 'evidence');
    else
        update resolver.catalog_item i
           set status = v_row ->> 'status', revision = v_revision, title = v_row ->> 'title',
               successors = array(select jsonb_array_elements_text(v_row -> 'successors')),
               decision_id = p_decision, evidence = p_fact -> 'evidence'
         where i.tenant_id = p_tenant and i.catalog_id = p_catalog and i.item_id = v_item
           and i.revision = v_revision - 1;
        if not found then
            perform resolver.catalog_stale(p_fact);
        end if;
    end if;
    insert into resolver.catalog_item_attribute (tenant_id, catalog_id, item_id, attribute_key, definition_version,
        value, unit, basis, decision_id)
    select p_tenant, p_catalog, v_item, a ->> 'key', (a ->> 'definition_version')::integer, a ->> 'value',
           a ->> 'unit', a ->> 'basis', p_decision
      from jsonb_array_elements(v_row -> 'new_attributes') a
    on conflict (tenant_id, catalog_id, item_id, attribute_key) do update
       set definition_version = excluded.definition_version, value = excluded.value, unit = excluded.unit,
           basis = excluded.basis, decision_id = excluded.decision_id;
    insert into resolver.catalog_item_key (tenant_id, catalog_id, class_id, generation, identity_hash, item_id, status,
        rule, canonical, decision_id)
    select p_tenant, p_catalog, k ->> 'class_id', (k ->> 'generation')::integer, k ->> 'identity_hash', v_item,
           'active', k ->> 'rule', k ->> 'canonical', p_decision
      from jsonb_array_elements(v_row -> 'new_keys') k;
    perform resolver.catalog_touch_release(p_tenant, p_catalog, v_item);
end $$;

create function resolver.catalog_apply_merchant(p_tenant text, p_catalog text, p_decision text, p_fact jsonb)
returns void language plpgsql as $$
declare
    v_row      jsonb := p_fact -> 'row';
    v_revision bigint := (p_fact ->> 'revision')::bigint;
begin
    if v_revision = 1 then
        insert into resolver.merchant (tenant_id, catalog_id, merchant_id, source_id, name, revision, decision_id,
            evidence)
        values (p_tenant, p_catalog, p_fact ->> 'id', v_row ->> 'source_id', v_row ->> 'name', 1, p_decision,
            p_fact -> 'evidence');
    else
        update resolver.merchant m
           set name = v_row ->> 'name', revision = v_revision, decision_id = p_decision,
               evidence = p_fact -> 'evidence'
         where m.tenant_id = p_tenant and m.catalog_id = p_catalog and m.merchant_id = p_fact ->> 'id'
           and m.revision = v_revision - 1;
        if not found then
            perform resolver.catalog_stale(p_fact);
        end if;
    end if;
end $$;

create function resolver.catalog_apply_mapping(p_tenant text, p_catalog text, p_decision text, p_fact jsonb)
returns void language plpgsql as $$
declare
    v_row      jsonb := p_fact -> 'row';
    v_revision bigint := (p_fact ->> 'revision')::bigint;
    v_former   text;
begin
    if v_revision = 1 then
        insert into resolver.listing_mapping (tenant_id, catalog_id, listing_id, revision, item_id, item_revision,
            status, source_id, listing_key, merchant_id, url, title, observed_at, decision_id, evidence)
        values (p_tenant, p_catalog, p_fact ->> 'id', 1, v_row ->> 'item_id', (v_row ->> 'item_revision')::bigint,
            v_row ->> 'status', v_row ->> 'source_id', v_row ->> 'listing_key', v_row ->> 'merchant_id',
            v_row ->> 'url', v_row ->> 'title', (v_row ->> 'observed_at')::timestamptz, p_decision,
            p_fact -> 'evidence');
    else
        select m.item_id into v_former from resolver.listing_mapping m
         where m.tenant_id = p_tenant and m.catalog_id = p_catalog and m.listing_id = p_fact ->> 'id';
        update resolver.listing_mapping m
           set revision = v_revision, item_id = v_row ->> 'item_id',
               item_revision = (v_row ->> 'item_revision')::bigint, status = v_row ->> 'status',
               merchant_id = v_row ->> 'merchant_id', url = v_row ->> 'url', title = v_row ->> 'title',
               observed_at = (v_row ->> 'observed_at')::timestamptz, decision_id = p_decision,
               evidence = p_fact -> 'evidence'
         where m.tenant_id = p_tenant and m.catalog_id = p_catalog and m.listing_id = p_fact ->> 'id'
           and m.revision = v_revision - 1;
        if not found then
            perform resolver.catalog_stale(p_fact);
        end if;
    end if;
    perform resolver.catalog_touch_release(p_tenant, p_catalog, v_row ->> 'item_id');
    if v_former is distinct from v_row ->> 'item_id' and v_former is not null then
        perform resolver.catalog_touch_release(p_tenant, p_catalog, v_former);
    end if;
end $$;

create function resolver.catalog_apply_observation(p_tenant text, p_catalog text, p_decision text, p_fact jsonb)
returns void language plpgsql as $$
declare
    v_row      jsonb := p_fact -> 'row';
    v_revision bigint := (p_fact ->> 'revision')::bigint;
begin
    if v_revision = 1 then
        insert into resolver.inventory_observation (tenant_id, catalog_id, listing_id, revision, amount, currency,
            availability, observed_at, decision_id, evidence)
        values (p_tenant, p_catalog, p_fact ->> 'id', 1, (v_row ->> 'amount')::numeric, v_row ->> 'currency',
            v_row ->> 'availability', (v_row ->> 'observed_at')::timestamptz, p_decision, p_fact -> 'evidence');
    else
        update resolver.inventory_observation o
           set revision = v_revision, amount = (v_row ->> 'amount')::numeric, currency = v_row ->> 'currency',
               availability = v_row ->> 'availability', observed_at = (v_row ->> 'observed_at')::timestamptz,
               decision_id = p_decision, evidence = p_fact -> 'evidence'
         where o.tenant_id = p_tenant and o.catalog_id = p_catalog and o.listing_id = p_fact ->> 'id'
           and o.revision = v_revision - 1;
        if not found then
            perform resolver.catalog_stale(p_fact);
        end if;
    end if;
end $$;

-- A release is written only against the very revisions that it names.
create function resolver.catalog_apply_release(p_tenant text, p_catalog text, p_decision text, p_fact jsonb)
returns void language plpgsql as $$
declare
    v_row      jsonb := p_fact -> 'row';
    v_item     text := v_row ->> 'item_id';
    v_revision bigint := (p_fact ->> 'revision')::bigint;
begin
    perform 1 from resolver.catalog_item i
      where i.tenant_id = p_tenant and i.catalog_id = p_catalog and i.item_id = v_item
        and i.revision = (v_row ->> 'item_revision')::bigint;
    if not found or exists (
        select 1 from jsonb_array_elements(v_row -> 'listings') l
        left join resolver.listing_mapping m
          on m.tenant_id = p_tenant and m.catalog_id = p_catalog and m.listing_id = l ->> 'listing_id'
         and m.item_id = v_item and m.status = 'active' and m.revision = (l ->> 'mapping_revision')::bigint
        where m.listing_id is null) then
        perform resolver.catalog_stale(p_fact);
    end if;
    if v_revision = 1 then
        insert into resolver.release (tenant_id, catalog_id, release_id, item_id, item_revision, revision, content,
            decision_id, evidence)
        values (p_tenant, p_catalog, p_fact ->> 'id', v_item, (v_row ->> 'item_revision')::bigint, 1,
            v_row -> 'content', p_decision, p_fact -> 'evidence');
    else
        update resolver.release r
           set item_revision = (v_row ->> 'item_revision')::bigint, revision = v_revision,
               content = v_row -> 'content', decision_id = p_decision, evidence = p_fact -> 'evidence'
         where r.tenant_id = p_tenant and r.catalog_id = p_catalog and r.release_id = p_fact ->> 'id'
           and r.revision = v_revision - 1;
        if not found then
            perform resolver.catalog_stale(p_fact);
        end if;
    end if;
    delete from resolver.release_due d
     where d.tenant_id = p_tenant and d.catalog_id = p_catalog and d.item_id = v_item
       and d.touched = (v_row ->> 'touched')::bigint;
end $$;

-- One fact with its row of history; the room's own functions know their tables.
create function resolver.catalog_apply_fact(p_tenant text, p_catalog text, p_decision text, p_fact jsonb)
returns void language plpgsql as $$
begin
    case p_fact ->> 'type'
        when 'catalog_item' then
            perform resolver.catalog_apply_item(p_tenant, p_catalog, p_decision, p_fact);
        when 'merchant' then
            perform resolver.catalog_apply_merchant(p_tenant, p_catalog, p_decision, p_fact);
        when 'listing_mapping' then
            perform resolver.catalog_apply_mapping(p_tenant, p_catalog, p_decision, p_fact);
        when 'inventory_observation' then
            perform resolver.catalog_apply_observation(p_tenant, p_catalog, p_decision, p_fact);
        when 'release' then
            perform resolver.catalog_apply_release(p_tenant, p_catalog, p_decision, p_fact);
    end case;
    insert into resolver.catalog_revision (tenant_id, catalog_id, aggregate_type, aggregate_id, revision, decision_id,
        evidence, state, recorded_at)
    values (p_tenant, p_catalog, p_fact ->> 'type', p_fact ->> 'id', (p_fact ->> 'revision')::bigint, p_decision,
        p_fact -> 'evidence', p_fact -> 'state', clock_timestamp());
end $$;

reset role;
