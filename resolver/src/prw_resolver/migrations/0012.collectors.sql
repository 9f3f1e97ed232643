-- How collectors are, and how far those have come that keep nothing between runs.
-- depends: 0011.catalog_rules

set local role prw_owner;

-- What an instance said of itself at a moment; a moment is said once.
create table resolver.collector_heartbeat (
    tenant_id text not null,
    instance_id text not null,
    at timestamptz not null,
    -- By our clock: a lease is counted from here.
    received_at timestamptz not null default clock_timestamp(),
    -- How a run ended that is reported with it; null where the instance only lives.
    run_outcome text check (run_outcome in ('succeeded', 'partial', 'failed')),
    run jsonb,
    primary key (tenant_id, instance_id, at),
    check ((run is null) = (run_outcome is null)),
    foreign key (tenant_id, instance_id) references resolver.collector_instance
);

create index collector_heartbeat_runs on resolver.collector_heartbeat (tenant_id, instance_id, run_outcome, at)
where run_outcome is not null;

create table resolver.collector_checkpoint (
    tenant_id text not null,
    source_id text not null,
    adapter text not null,
    partition text not null,
    revision bigint not null check (revision > 0),
    -- The adapter's own words, as it wrote them.
    state text not null check (octet_length(state) <= 65536),
    -- Items that were put off or set aside before this state.
    deferred jsonb not null check (jsonb_typeof(deferred) = 'array'),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, source_id, adapter, partition),
    foreign key (tenant_id, source_id) references resolver.source
);

call resolver.protect('resolver.collector_heartbeat');
call resolver.protect('resolver.collector_checkpoint');

grant select, insert, delete on resolver.collector_heartbeat to resolver_app;
grant select, insert, update on resolver.collector_checkpoint to resolver_app;
