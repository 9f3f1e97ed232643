-- What collectors hand over: artifacts, captures, receipts, and the instances that register.
-- depends: 0002.access

-- Bytes that are verified and durable in the object store.
create table resolver.artifact (
    tenant_id text not null references resolver.tenant,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    bytes bigint not null check (bytes >= 0),
    media_type text not null,
    stored_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, sha256)
);

-- A declared upload; who may put its bytes is what stands here.
create table resolver.upload (
    tenant_id text not null,
    upload_id text not null,
    source_id text not null,
    instance_id text not null,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    bytes bigint not null check (bytes >= 0),
    media_type text not null,
    declared_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    primary key (tenant_id, upload_id),
    foreign key (tenant_id, source_id) references resolver.source
);

create table resolver.capture (
    tenant_id text not null,
    capture_id text not null,
    catalog_id text not null,
    source_id text not null,
    worker_id text not null,
    instance_id text not null,
    native_record_id text not null,
    captured_at timestamptz not null,
    -- SHA-256 over worker, source, native record and captured_at: unique for ever, within index limits.
    idempotency_key text not null,
    body_digest text not null,
    adapter_name text not null,
    adapter_version text not null,
    config jsonb not null,
    presence text not null check (presence in ('present', 'absent')),
    -- The catalogue's active generation when the capture arrived; a replay uses it again.
    identity_generation integer not null check (identity_generation > 0),
    -- The normalised capture as it was received, whose digest is body_digest.
    document jsonb not null,
    received_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, capture_id),
    unique (tenant_id, idempotency_key),
    foreign key (tenant_id, catalog_id, source_id)
    references resolver.source (tenant_id, catalog_id, source_id)
);

create index capture_received on resolver.capture (received_at);

create table resolver.capture_part (
    tenant_id text not null,
    capture_id text not null,
    role text not null,
    ordinal integer not null check (ordinal >= 0),
    sha256 text not null,
    -- The earlier bytes that a 304 stands for.
    cites_sha256 text,
    primary key (tenant_id, capture_id, role),
    foreign key (tenant_id, capture_id) references resolver.capture,
    foreign key (tenant_id, sha256) references resolver.artifact,
    foreign key (tenant_id, cites_sha256) references resolver.artifact
);

create index capture_part_artifact on resolver.capture_part (tenant_id, sha256);

create table resolver.receipt (
    tenant_id text not null,
    receipt_id text not null,
    capture_id text not null,
    -- The stable instance that may read it, whatever client it calls with.
    instance_id text not null,
    received_at timestamptz not null,
    primary key (tenant_id, receipt_id),
    unique (tenant_id, capture_id),
    foreign key (tenant_id, capture_id) references resolver.capture
);

create unique index receipt_by_id on resolver.receipt (receipt_id);

create table resolver.collector_instance (
    tenant_id text not null references resolver.tenant,
    instance_id text not null,
    worker_id text not null,
    version text not null,
    runtime text not null,
    runtime_kind text not null check (runtime_kind in ('', 'long-running', 'scheduled')),
    execution_region jsonb not null,
    egress jsonb not null,
    targets text [] not null check (cardinality(targets) > 0),
    capabilities text [] not null,
    registered_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, instance_id)
);

call resolver.protect('resolver.artifact');
call resolver.protect('resolver.upload');
call resolver.protect('resolver.capture');
call resolver.protect('resolver.capture_part');
call resolver.protect('resolver.receipt');
call resolver.protect('resolver.collector_instance');

-- Evidence is written once: no update and no delete, but for what is not evidence.
grant select, insert on resolver.artifact, resolver.capture, resolver.capture_part, resolver.receipt to resolver_app;
grant select, insert, update on resolver.upload, resolver.collector_instance to resolver_app;

grant select on resolver.receipt, resolver.capture to resolver_access;
create policy any_tenant on resolver.receipt for select to resolver_access using (true);
create policy any_tenant on resolver.capture for select to resolver_access using (true);

-- Which of these receipts are another tenant's; says nothing else about them.
create function resolver.receipts_elsewhere(receipts text []) returns setof text
language sql stable security definer set search_path = pg_catalog
begin atomic
select r.receipt_id from resolver.receipt as r
where r.receipt_id = any(receipts) and r.tenant_id is distinct from resolver.current_tenant();
end;

alter function resolver.receipts_elsewhere(text []) owner to resolver_access;

set local role resolver_access;
revoke all on function resolver.receipts_elsewhere(text []) from public;
grant execute on function resolver.receipts_elsewhere(text []) to resolver_app;
set local role prw_owner;
