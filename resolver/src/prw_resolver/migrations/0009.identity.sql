-- Identity: what became of each record of a capture.
-- depends: 0008.catalog

set local role prw_owner;

create table resolver.record_outcome (
    tenant_id   text        not null,
    capture_id  text        not null,
    record_id   text        not null,
    catalog_id  text        not null,
    listing_id  text        not null,
    outcome     text        not null check (outcome in ('accepted', 'unchanged', 'in_review', 'rejected', 'history',
                                                        'retraction')),
    actor_kind  text        not null check (actor_kind in ('person', 'rule')),
    case_id     text,
    code        text,
    recorded_at timestamptz not null,
    primary key (tenant_id, capture_id, record_id),
    foreign key (tenant_id, case_id) references resolver.review_case (tenant_id, case_id)
);
create index record_outcome_case on resolver.record_outcome (tenant_id, case_id) where case_id is not null;

call resolver.protect('resolver.record_outcome');
grant select, insert, update on resolver.record_outcome to resolver_app;

-- A record's outcome; a case that is decided later moves it.
create function resolver.identity_apply_outcome(p_tenant text, p_catalog text, p_outcome jsonb) returns void
language sql as $$
    insert into resolver.record_outcome (tenant_id, capture_id, record_id, catalog_id, listing_id, outcome, actor_kind,
        case_id, code, recorded_at)
    values (p_tenant, p_outcome ->> 'capture_id', p_outcome ->> 'record_id', p_catalog, p_outcome ->> 'listing_id',
        p_outcome ->> 'outcome', p_outcome ->> 'actor_kind', p_outcome ->> 'case_id', p_outcome ->> 'code',
        clock_timestamp())
    on conflict (tenant_id, capture_id, record_id) do update
       set outcome = excluded.outcome, actor_kind = excluded.actor_kind, case_id = excluded.case_id,
           code = excluded.code, recorded_at = excluded.recorded_at;
$$;

-- With a case end the outcomes that waited for it; the record it was decided on gets its own right after.
create function resolver.identity_end_outcomes(p_tenant text, p_case jsonb) returns void
language sql as $$
    update resolver.record_outcome o
       set outcome = 'history', recorded_at = clock_timestamp()
     where o.tenant_id = p_tenant and o.case_id = p_case ->> 'case_id' and o.outcome = 'in_review'
       and p_case ->> 'status' in ('decided', 'superseded');
$$;

-- The owners of keys must be what the decider saw, or it decides again: the order of arrival changes nothing.
create function resolver.identity_check_lookups(p_tenant text, p_catalog text, p_lookups jsonb) returns void
language plpgsql as $$
declare
    v_lookup jsonb;
    v_owner  text;
begin
    for v_lookup in select jsonb_array_elements(p_lookups) loop
        select k.item_id into v_owner from resolver.catalog_item_key k
         where k.tenant_id = p_tenant and k.catalog_id = p_catalog and k.class_id = v_lookup ->> 'class_id'
           and k.generation = (v_lookup ->> 'generation')::integer
           and k.identity_hash = v_lookup ->> 'identity_hash' and k.status in ('ready', 'active');
        if v_owner is distinct from v_lookup ->> 'item_id' then
            raise exception 'KEY_TAKEN' using errcode = 'PRW01',
                detail = format('key %s is owned by %s', v_lookup ->> 'identity_hash', coalesce(v_owner, 'no item'));
        end if;
    end loop;
end $$;

reset role;
