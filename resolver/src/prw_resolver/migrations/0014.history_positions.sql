-- Each revision in the history of facts says where in its stream it was accepted, so that the accepted state at any
-- position can be read later, after its events are pruned and under later epochs.
-- depends: 0013.one_writer

set local role prw_owner;

alter table resolver.catalog_revision add column history_epoch bigint;
alter table resolver.catalog_revision add column position bigint;

-- Nothing was ever pruned before this step, so that every revision has its event. The owner is bound by security too.
alter table resolver.catalog_revision no force row level security;
alter table resolver.outbox no force row level security;
update resolver.catalog_revision r set history_epoch = o.history_epoch, position = o.position
  from resolver.outbox o
 where o.tenant_id = r.tenant_id and o.catalog_id = r.catalog_id and o.aggregate_type = r.aggregate_type
   and o.aggregate_id = r.aggregate_id and o.revision = r.revision;
alter table resolver.catalog_revision force row level security;
alter table resolver.outbox force row level security;

-- Holds for what is written from here on; what is here was given both above.
alter table resolver.catalog_revision
add constraint catalog_revision_has_position check (history_epoch is not null and position is not null) not valid;

-- One fact with its row of history; the room's own functions know their tables.
create or replace function resolver.catalog_apply_fact(p_tenant text, p_catalog text, p_decision text, p_fact jsonb)
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
        evidence, state, recorded_at, history_epoch, position)
    values (p_tenant, p_catalog, p_fact ->> 'type', p_fact ->> 'id', (p_fact ->> 'revision')::bigint, p_decision,
        p_fact -> 'evidence', p_fact -> 'state', clock_timestamp(), (p_fact ->> 'history_epoch')::bigint,
        (p_fact ->> 'position')::bigint);
end $$;

-- One command under the cursor's lock (AW-01): case, decision, facts, and with each fact its event (INV-06).
-- Returns the position after it.
create or replace function resolver.stream_apply(p_tenant text, p_catalog text, p_epoch bigint, p_position bigint,
    p_command jsonb) returns bigint language plpgsql as $$
declare
    v_decision text := p_command -> 'decision' ->> 'decision_id';
    v_fact     jsonb;
    v_outcome  jsonb;
    v_position bigint := p_position;
begin
    perform resolver.identity_check_lookups(p_tenant, p_catalog, coalesce(p_command -> 'lookups', '[]'));
    if p_command ? 'case' then
        perform resolver.review_apply_case(p_tenant, p_catalog, p_command -> 'case');
        perform resolver.identity_end_outcomes(p_tenant, p_command -> 'case');
    end if;
    if p_command ? 'decision' then
        perform resolver.review_apply_decision(p_tenant, p_catalog, p_command -> 'decision');
    end if;
    for v_fact in select jsonb_array_elements(coalesce(p_command -> 'facts', '[]')) loop
        v_position := v_position + 1;
        perform resolver.catalog_apply_fact(p_tenant, p_catalog, v_decision,
            v_fact || jsonb_build_object('history_epoch', p_epoch, 'position', v_position));
        if v_fact -> 'row' ? 'new_keys' then
            perform resolver.review_wake_cases(p_tenant, p_catalog, v_fact -> 'row' -> 'new_keys',
                                               p_command -> 'case' ->> 'case_id');
        end if;
        insert into resolver.outbox (tenant_id, catalog_id, history_epoch, position, event_id, aggregate_type,
            aggregate_id, revision, event, committed_at)
        values (p_tenant, p_catalog, p_epoch, v_position, v_fact ->> 'event_id', v_fact ->> 'type', v_fact ->> 'id',
            (v_fact ->> 'revision')::bigint, decode(v_fact ->> 'event', 'base64'), clock_timestamp());
    end loop;
    for v_outcome in select jsonb_array_elements(coalesce(p_command -> 'outcomes', '[]')) loop
        perform resolver.identity_apply_outcome(p_tenant, p_catalog, v_outcome);
    end loop;
    if p_command ? 'woken' then
        delete from resolver.review_wake w
         where w.tenant_id = p_tenant and w.catalog_id = p_catalog and w.case_id = p_command -> 'woken' ->> 'case_id'
           and w.touched = (p_command -> 'woken' ->> 'touched')::bigint;
    end if;
    if p_command ? 'inbox' then
        perform resolver.jobs_apply(p_tenant, p_command -> 'inbox');
    end if;
    return v_position;
end $$;

reset role;
