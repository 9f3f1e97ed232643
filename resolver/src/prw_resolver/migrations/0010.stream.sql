-- Stream: one gapless history of accepted changes for each (tenant, catalog, epoch), and the one way to write it.
-- depends: 0009.identity

set local role prw_owner;

-- The cursor's row is the lock that serialises a stream; its position is the last one committed.
create table resolver.stream_cursor (
    tenant_id     text   not null,
    catalog_id    text   not null,
    history_epoch bigint not null check (history_epoch >= 1),
    position      bigint not null default 0 check (position >= 0),
    status        text   not null default 'open' check (status in ('open', 'fenced')),
    primary key (tenant_id, catalog_id, history_epoch)
) with (fillfactor = 50);

-- The lock under which consumers register, leases are made and pruning runs.
create table resolver.stream_retention (
    tenant_id      text   not null,
    catalog_id     text   not null,
    history_epoch  bigint not null,
    pruned_through bigint not null default 0 check (pruned_through >= 0),
    primary key (tenant_id, catalog_id, history_epoch)
);

create table resolver.stream_consumer (
    tenant_id         text        not null,
    catalog_id        text        not null,
    history_epoch     bigint      not null,
    consumer_id       text        not null,
    principal         text        not null,
    status            text        not null default 'live' check (status in ('live', 'paused', 'retired')),
    reported_position bigint      not null default 0,
    reported_at       timestamptz,
    registered_at     timestamptz not null,
    primary key (tenant_id, catalog_id, history_epoch, consumer_id)
);

-- Events are encoded once and kept as bytes, without their position.
create table resolver.outbox (
    tenant_id      text        not null,
    catalog_id     text        not null,
    history_epoch  bigint      not null,
    position       bigint      not null check (position >= 1),
    event_id       text        not null,
    aggregate_type text        not null,
    aggregate_id   text        not null,
    revision       bigint      not null,
    event          bytea       not null check (length(event) > 0),
    committed_at   timestamptz not null,
    published_at   timestamptz,
    primary key (tenant_id, catalog_id, history_epoch, position)
);
create index outbox_unpublished on resolver.outbox (tenant_id, catalog_id, history_epoch, position)
    where published_at is null;

-- Answers by command id, so that a caller whose connection died around COMMIT can ask again.
create table resolver.stream_command (
    tenant_id     text        not null,
    catalog_id    text        not null,
    command_id    text        not null,
    history_epoch bigint      not null,
    digest        text        not null,
    answer        jsonb       not null,
    committed_at  timestamptz not null,
    primary key (tenant_id, catalog_id, command_id)
);

call resolver.protect('resolver.stream_cursor');
call resolver.protect('resolver.stream_retention');
call resolver.protect('resolver.stream_consumer');
call resolver.protect('resolver.outbox');
call resolver.protect('resolver.stream_command');
grant select, insert, update on resolver.stream_cursor, resolver.stream_consumer to resolver_app;
grant select, insert on resolver.stream_retention, resolver.outbox, resolver.stream_command to resolver_app;
-- SELECT … FOR UPDATE on the retention row is the lock; it needs the right to update some column.
grant update (pruned_through) on resolver.stream_retention to resolver_app;

-- The relay works for every tenant, and can mark what it has published and nothing else.
grant select on resolver.outbox to resolver_relay;
grant update (published_at) on resolver.outbox to resolver_relay;
create policy outbox_relay_reads on resolver.outbox for select to resolver_relay using (true);
create policy outbox_relay_marks on resolver.outbox for update to resolver_relay using (true) with check (true);

-- Opens a stream where it is not yet there; doing it again changes nothing.
create function resolver.stream_open(p_tenant text, p_catalog text, p_epoch bigint) returns void
language sql as $$
    insert into resolver.stream_cursor (tenant_id, catalog_id, history_epoch)
    values (p_tenant, p_catalog, p_epoch) on conflict do nothing;
    insert into resolver.stream_retention (tenant_id, catalog_id, history_epoch)
    values (p_tenant, p_catalog, p_epoch) on conflict do nothing;
$$;

-- One command under the cursor's lock (AW-01): case, decision, facts, and with each fact its event (INV-06).
-- Returns the position after it.
create function resolver.stream_apply(p_tenant text, p_catalog text, p_epoch bigint, p_position bigint, p_command jsonb)
returns bigint language plpgsql as $$
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
        perform resolver.catalog_apply_fact(p_tenant, p_catalog, v_decision, v_fact);
        if v_fact -> 'row' ? 'new_keys' then
            perform resolver.review_wake_cases(p_tenant, p_catalog, v_fact -> 'row' -> 'new_keys',
                                               p_command -> 'case' ->> 'case_id');
        end if;
        v_position := v_position + 1;
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

-- Commits a group of commands of one stream in the order given; any failure fails the whole group.
-- A command seen before gives its former answer, replayed; another body under its id is refused.
create function resolver.stream_commit(p_tenant text, p_catalog text, p_epoch bigint, p_commands jsonb) returns jsonb
language plpgsql as $$
declare
    v_position bigint;
    v_before   bigint;
    v_status   text;
    v_command  jsonb;
    v_answer   jsonb;
    v_digest   text;
    v_answers  jsonb := '[]';
begin
    select c.position, c.status into v_position, v_status from resolver.stream_cursor c
     where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
       for update;
    if not found or v_status <> 'open' then
        raise exception 'EPOCH_FENCED' using errcode = 'PRW01',
            detail = format('epoch %s of %s/%s is not open', p_epoch, p_tenant, p_catalog);
    end if;
    for v_command in select jsonb_array_elements(p_commands) loop
        select s.answer, s.digest into v_answer, v_digest from resolver.stream_command s
         where s.tenant_id = p_tenant and s.catalog_id = p_catalog and s.command_id = v_command ->> 'command_id';
        if found then
            if v_digest <> v_command ->> 'digest' then
                raise exception 'IDEMPOTENCY_CONFLICT' using errcode = 'PRW01',
                    detail = format('command %s was another one before', v_command ->> 'command_id');
            end if;
            v_answers := v_answers || jsonb_build_array(v_answer || '{"replayed": true}');
            continue;
        end if;
        v_before := v_position;
        v_position := resolver.stream_apply(p_tenant, p_catalog, p_epoch, v_position, v_command);
        v_answer := jsonb_build_object('first_position', v_before + 1, 'last_position', v_position,
            'answer', v_command -> 'answer');
        insert into resolver.stream_command (tenant_id, catalog_id, command_id, history_epoch, digest, answer,
            committed_at)
        values (p_tenant, p_catalog, v_command ->> 'command_id', p_epoch, v_command ->> 'digest', v_answer,
            clock_timestamp());
        v_answers := v_answers || jsonb_build_array(v_answer || '{"replayed": false}');
    end loop;
    update resolver.stream_cursor c set position = v_position
     where c.tenant_id = p_tenant and c.catalog_id = p_catalog and c.history_epoch = p_epoch
       and c.position <> v_position;
    return v_answers;
end $$;

-- Which catalogues have follow-up work: a worker serves every tenant, and enters each by its name.
grant select (tenant_id, catalog_id) on resolver.review_wake, resolver.release_due to resolver_access;
create policy any_tenant on resolver.review_wake for select to resolver_access using (true);
create policy any_tenant on resolver.release_due for select to resolver_access using (true);

create function resolver.follow_ups_due() returns table (tenant_id text, catalog_id text)
language sql stable security definer set search_path = pg_catalog
begin atomic
    select w.tenant_id, w.catalog_id from resolver.review_wake w
    union
    select d.tenant_id, d.catalog_id from resolver.release_due d;
end;
alter function resolver.follow_ups_due() owner to resolver_access;
set local role resolver_access;
revoke all on function resolver.follow_ups_due() from public;
grant execute on function resolver.follow_ups_due() to resolver_app;

reset role;
