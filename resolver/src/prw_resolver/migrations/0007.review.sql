-- Review: cases, and the decisions that every accepted fact rests on. Decisions are immutable (INV-08).
-- depends: 0006.extraction

set local role prw_owner;

create table resolver.review_case (
    tenant_id       text        not null,
    case_id         text        not null,
    catalog_id      text        not null,
    kind            text        not null check (kind in ('identity_mapping', 'conflict', 'retraction', 'split',
                                                         'merge', 'activation', 'degraded_source')),
    status          text        not null check (status in ('awaiting_human', 'deferred', 'decided', 'superseded')),
    revision        bigint      not null check (revision >= 1),
    reason          text        not null,
    listing_id      text        not null,
    source_id       text        not null,
    listing_key     text        not null,
    title           text        not null,
    record          jsonb       not null,
    candidates      jsonb       not null,
    evidence        jsonb       not null check (jsonb_array_length(evidence) > 0),
    evidence_digest text        not null,
    observed_at     timestamptz not null,
    opened_at       timestamptz not null,
    updated_at      timestamptz not null,
    primary key (tenant_id, case_id)
);
-- One open question about a listing at a time.
create unique index review_case_open on resolver.review_case (tenant_id, catalog_id, listing_id)
    where status in ('awaiting_human', 'deferred');
create index review_case_queue on resolver.review_case (tenant_id, catalog_id, opened_at, case_id);
create index review_case_listing on resolver.review_case (tenant_id, catalog_id, listing_id, updated_at);

-- The keys that an open case waits for: when one becomes active, the case is identified again.
create table resolver.review_case_key (
    tenant_id     text    not null,
    catalog_id    text    not null,
    class_id      text    not null,
    generation    integer not null,
    identity_hash text    not null,
    case_id       text    not null,
    primary key (tenant_id, catalog_id, class_id, generation, identity_hash, case_id),
    foreign key (tenant_id, case_id) references resolver.review_case (tenant_id, case_id)
);
create index review_case_key_case on resolver.review_case_key (tenant_id, case_id);

-- Numbers follow-up work, so that a later touch of a thing is never taken for the one that was worked.
create sequence resolver.touch;
grant usage on sequence resolver.touch to resolver_app;

-- Cases to be identified again.
create table resolver.review_wake (
    tenant_id  text   not null,
    catalog_id text   not null,
    case_id    text   not null,
    touched    bigint not null default nextval('resolver.touch'),
    primary key (tenant_id, catalog_id, case_id)
);

-- Whether an adapter made every claim quoted; a quote that does not say who made it counts as a model's.
create function resolver.review_all_of_adapters(p_evidence jsonb) returns boolean
language sql immutable parallel safe
return jsonb_array_length(jsonb_path_query_array(p_evidence, '$[*] ? (@.origin == "adapter")'))
       = jsonb_array_length(p_evidence);

create table resolver.decision (
    tenant_id       text        not null,
    decision_id     text        not null,
    catalog_id      text        not null,
    case_id         text,
    case_revision   bigint,
    action          text        not null check (action in ('accept', 'correct', 'reject', 'defer', 'split', 'merge',
                                                           'retract', 'approve', 'undo')),
    actor_kind      text        not null check (actor_kind in ('person', 'rule')),
    actor_id        text        not null check (actor_id <> ''),
    rationale       text        not null,
    corrections     jsonb       not null default '{}',
    evidence        jsonb       not null check (jsonb_typeof(evidence) = 'array' and jsonb_array_length(evidence) > 0),
    prior_decisions text[]      not null default '{}',
    decided_at      timestamptz not null,
    primary key (tenant_id, decision_id),
    foreign key (tenant_id, case_id) references resolver.review_case (tenant_id, case_id),
    -- No model's word is ever a fact: a rule rests on an adapter's claims only. Publishing claims nothing of its own,
    -- it rests on the decisions that accepted what is published.
    constraint decision_rule_rests_on_adapters
        check (actor_kind <> 'rule' or resolver.review_all_of_adapters(evidence)
               or (action = 'approve' and cardinality(prior_decisions) > 0))
);
create index decision_case on resolver.decision (tenant_id, case_id) where case_id is not null;

call resolver.protect('resolver.review_case');
call resolver.protect('resolver.review_case_key');
call resolver.protect('resolver.review_wake');
call resolver.protect('resolver.decision');
grant select, insert, update on resolver.review_case to resolver_app;
grant select, insert, delete on resolver.review_case_key to resolver_app;
grant select, insert, update, delete on resolver.review_wake to resolver_app;
grant select, insert on resolver.decision to resolver_app;

-- Opens a case (revision 1) or moves it from the revision that its decider saw (INV-04).
create function resolver.review_apply_case(p_tenant text, p_catalog text, p_case jsonb) returns void
language plpgsql as $$
declare
    v_id       text := p_case ->> 'case_id';
    v_expected bigint := (p_case ->> 'expected_revision')::bigint;
begin
    if v_expected = 0 then
        insert into resolver.review_case (tenant_id, case_id, catalog_id, kind, status, revision, reason, listing_id,
            source_id, listing_key, title, record, candidates, evidence, evidence_digest, observed_at, opened_at,
            updated_at)
        values (p_tenant, v_id, p_catalog, p_case ->> 'kind', p_case ->> 'status', 1, p_case ->> 'reason',
            p_case ->> 'listing_id', p_case ->> 'source_id', p_case ->> 'listing_key', p_case ->> 'title',
            p_case -> 'record', p_case -> 'candidates', p_case -> 'evidence', p_case ->> 'evidence_digest',
            (p_case ->> 'observed_at')::timestamptz, clock_timestamp(), clock_timestamp());
    else
        update resolver.review_case c
           set revision = c.revision + 1,
               status = p_case ->> 'status',
               kind = coalesce(p_case ->> 'kind', c.kind),
               reason = coalesce(p_case ->> 'reason', c.reason),
               title = coalesce(p_case ->> 'title', c.title),
               record = coalesce(p_case -> 'record', c.record),
               candidates = coalesce(p_case -> 'candidates', c.candidates),
               evidence = coalesce(p_case -> 'evidence', c.evidence),
               evidence_digest = coalesce(p_case ->> 'evidence_digest', c.evidence_digest),
               observed_at = coalesce((p_case ->> 'observed_at')::timestamptz, c.observed_at),
               updated_at = clock_timestamp()
         where c.tenant_id = p_tenant and c.case_id = v_id and c.revision = v_expected;
        if not found then
            raise exception 'STALE_CASE_REVISION' using errcode = 'PRW01',
                detail = format('case %s is not at revision %s', v_id, v_expected);
        end if;
    end if;
    delete from resolver.review_case_key k where k.tenant_id = p_tenant and k.case_id = v_id;
    insert into resolver.review_case_key (tenant_id, catalog_id, class_id, generation, identity_hash, case_id)
    select p_tenant, p_catalog, w ->> 'class_id', (w ->> 'generation')::integer, w ->> 'identity_hash', v_id
      from jsonb_array_elements(coalesce(p_case -> 'waits_for', '[]')) w;
end $$;

-- Records a decision; it can never be changed afterwards.
create function resolver.review_apply_decision(p_tenant text, p_catalog text, p_decision jsonb) returns void
language sql as $$
    insert into resolver.decision (tenant_id, decision_id, catalog_id, case_id, case_revision, action, actor_kind,
        actor_id, rationale, corrections, evidence, prior_decisions, decided_at)
    values (p_tenant, p_decision ->> 'decision_id', p_catalog, p_decision ->> 'case_id',
        (p_decision ->> 'case_revision')::bigint, p_decision ->> 'action', p_decision ->> 'actor_kind',
        p_decision ->> 'actor_id', p_decision ->> 'rationale', coalesce(p_decision -> 'corrections', '{}'),
        p_decision -> 'evidence',
        array(select jsonb_array_elements_text(coalesce(p_decision -> 'prior_decisions', '[]'))),
        clock_timestamp());
$$;

-- Wakes the open cases that wait for one of these keys, but for the case that the command itself decides.
create function resolver.review_wake_cases(p_tenant text, p_catalog text, p_keys jsonb, p_but text) returns void
language sql as $$
    insert into resolver.review_wake (tenant_id, catalog_id, case_id)
    select distinct p_tenant, p_catalog, w.case_id
      from jsonb_array_elements(p_keys) k
      join resolver.review_case_key w
        on w.tenant_id = p_tenant and w.catalog_id = p_catalog and w.class_id = k ->> 'class_id'
       and w.generation = (k ->> 'generation')::integer and w.identity_hash = k ->> 'identity_hash'
     where w.case_id is distinct from p_but
    on conflict (tenant_id, catalog_id, case_id) do update set touched = excluded.touched;
$$;

-- Whether a case is another tenant's, so that a denial says no more than the contract allows.
grant select (tenant_id, case_id) on resolver.review_case to resolver_access;
create policy any_tenant on resolver.review_case for select to resolver_access using (true);
create index review_case_by_id on resolver.review_case (case_id);

create function resolver.review_case_is_elsewhere(p_case text) returns boolean
language sql stable security definer set search_path = pg_catalog
return exists (
    select from resolver.review_case c
    where c.case_id = p_case and c.tenant_id is distinct from resolver.current_tenant()
);
alter function resolver.review_case_is_elsewhere(text) owner to resolver_access;
set local role resolver_access;
revoke all on function resolver.review_case_is_elsewhere(text) from public;
grant execute on function resolver.review_case_is_elsewhere(text) to resolver_app;

reset role;
