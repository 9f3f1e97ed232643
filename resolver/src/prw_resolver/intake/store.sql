-- name: stored_sizes
-- The length of each named artifact that the tenant has stored.
select sha256, bytes from resolver.artifact where tenant_id = %(tenant_id)s and sha256 = any(%(digests)s);

-- name: find_artifact
-- The metadata of one stored artifact.
select sha256, bytes, media_type from resolver.artifact
where tenant_id = %(tenant_id)s and sha256 = %(sha256)s;

-- name: add_artifact
-- Record that bytes are verified and durable; twice is once.
insert into resolver.artifact (tenant_id, sha256, bytes, media_type)
values (%(tenant_id)s, %(sha256)s, %(bytes)s, %(media_type)s)
on conflict (tenant_id, sha256) do nothing;

-- name: declare_upload
-- Record an upload; declared again it is the same one, with the metadata and the time of the last declaration.
insert into resolver.upload (
    tenant_id, upload_id, source_id, instance_id, sha256, bytes, media_type, expires_at
)
values (
    %(tenant_id)s, %(upload_id)s, %(source_id)s, %(instance_id)s, %(sha256)s, %(bytes)s, %(media_type)s,
    clock_timestamp() + %(lifetime)s
)
on conflict (tenant_id, upload_id) do update
set bytes = excluded.bytes, media_type = excluded.media_type, expires_at = excluded.expires_at
returning expires_at;

-- name: find_upload
-- An upload of the tenant, and whether it has expired.
select upload_id, source_id, instance_id, sha256, bytes, media_type, expires_at,
    expires_at <= clock_timestamp() as expired
from resolver.upload where tenant_id = %(tenant_id)s and upload_id = %(upload_id)s;

-- name: find_by_key
-- The capture under an idempotency key, with its receipt.
select c.body_digest, r.receipt_id, r.capture_id, r.instance_id, r.received_at
from resolver.capture as c
inner join resolver.receipt as r on r.tenant_id = c.tenant_id and r.capture_id = c.capture_id
where c.tenant_id = %(tenant_id)s and c.idempotency_key = %(idempotency_key)s;

-- name: add_capture
-- Keep a capture; nothing comes back where its key is taken, once whoever took it has committed.
insert into resolver.capture (
    tenant_id, capture_id, catalog_id, source_id, worker_id, instance_id, native_record_id, captured_at,
    idempotency_key, body_digest, adapter_name, adapter_version, config, presence, identity_generation, document
)
values (
    %(tenant_id)s, %(capture_id)s, %(catalog_id)s, %(source_id)s, %(worker_id)s, %(instance_id)s,
    %(native_record_id)s, %(captured_at)s, %(idempotency_key)s, %(body_digest)s, %(adapter_name)s,
    %(adapter_version)s, %(config)s, %(presence)s, %(generation)s, %(document)s
)
on conflict (tenant_id, idempotency_key) do nothing
returning received_at;

-- name: add_parts
-- Keep which artifacts a capture cites.
insert into resolver.capture_part (tenant_id, capture_id, role, ordinal, sha256, cites_sha256)
select %(tenant_id)s, %(capture_id)s, part.role, part.ordinal - 1, part.sha256, part.cites
from unnest(%(roles)s::text [], %(digests)s::text [], %(cites)s::text [])
with ordinality as part (role, sha256, cites, ordinal);

-- name: add_receipt
-- Give a capture its receipt.
insert into resolver.receipt (tenant_id, receipt_id, capture_id, instance_id, received_at)
values (%(tenant_id)s, %(receipt_id)s, %(capture_id)s, %(instance_id)s, %(received_at)s);

-- name: find_receipts
-- Those of the named receipts that are the tenant's.
select receipt_id, capture_id, instance_id, received_at from resolver.receipt
where tenant_id = %(tenant_id)s and receipt_id = any(%(receipt_ids)s);

-- name: receipts_elsewhere
-- Which of the named receipts are another tenant's.
select found as receipt_id from resolver.receipts_elsewhere(%(receipt_ids)s) as found;

-- name: put_instance
-- Record an instance as it last described itself.
insert into resolver.collector_instance (
    tenant_id, instance_id, worker_id, version, runtime, runtime_kind, execution_region, egress, targets,
    capabilities
)
values (
    %(tenant_id)s, %(instance_id)s, %(worker_id)s, %(version)s, %(runtime)s, %(runtime_kind)s,
    %(execution_region)s, %(egress)s, %(targets)s, %(capabilities)s
)
on conflict (tenant_id, instance_id) do update
set worker_id = excluded.worker_id, version = excluded.version, runtime = excluded.runtime,
    runtime_kind = excluded.runtime_kind, execution_region = excluded.execution_region, egress = excluded.egress,
    targets = excluded.targets, capabilities = excluded.capabilities, updated_at = clock_timestamp();

-- name: find_capture
-- A capture's row with its normalised document.
select catalog_id, identity_generation, document
from resolver.capture where tenant_id = %(tenant_id)s and capture_id = %(capture_id)s;

-- name: is_registered
-- Whether the tenant has an instance of that name; it cannot go while this transaction lasts.
select runtime_kind from resolver.collector_instance
where tenant_id = %(tenant_id)s and instance_id = %(instance_id)s for key share;

-- name: add_heartbeat
-- Record what an instance said at a moment; a second time changes nothing.
insert into resolver.collector_heartbeat (tenant_id, instance_id, at, run_outcome, run)
values (%(tenant_id)s, %(instance_id)s, %(at)s, %(run_outcome)s, %(run)s)
on conflict (tenant_id, instance_id, at) do nothing;

-- name: drop_old_signs_of_life
-- Signs of life of an instance that nobody asks for any more, but for the newest; reports of runs stay.
delete from resolver.collector_heartbeat as h
where h.tenant_id = %(tenant_id)s and h.instance_id = %(instance_id)s and h.run_outcome is null
    and h.received_at < clock_timestamp() - %(kept)s::interval
    and exists (
        select from resolver.collector_heartbeat as newer
        where newer.tenant_id = h.tenant_id and newer.instance_id = h.instance_id and newer.at > h.at
    );

-- name: drop_old_reports
-- Reports of an instance's runs that nobody asks for any more, oldest first and at most so many, at its first report of
-- a day. The last one stays, the last good one, and for each source the last one and the last without an error.
with report as (
    select r.at, r.received_at, r.run_outcome, r.run from resolver.collector_heartbeat as r
    where r.tenant_id = %(tenant_id)s and r.instance_id = %(instance_id)s and r.run_outcome is not null
),
today as (
    select count(*) as reports from report
    where report.received_at >= date_trunc('day', clock_timestamp(), 'UTC')
),
source as (
    select report.at, one.value ->> 'source_id' as source_id, one.value -> 'error' as error
    from report cross join lateral jsonb_array_elements(report.run -> 'sources') as one
    cross join today
    where today.reports <= 1
),
kept as (
    select max(report.at) as at from report
    union all select max(report.at) from report where report.run_outcome = 'succeeded'
    union all select max(report.at) from report where report.run_outcome in ('succeeded', 'partial')
    union all select max(source.at) from source group by source.source_id
    union all select max(source.at) from source where source.error = 'null' group by source.source_id
)
delete from resolver.collector_heartbeat as h
where h.tenant_id = %(tenant_id)s and h.instance_id = %(instance_id)s and h.at in (
    select report.at from report cross join today
    where today.reports <= 1 and report.received_at < clock_timestamp() - %(kept)s::interval
        and report.at not in (select kept.at from kept where kept.at is not null)
    order by report.at limit %(at_most)s
);

-- name: standings
-- How instances of the tenant stand: one, or all where none is named.
select i.instance_id, i.worker_id, i.version, i.runtime_kind, i.targets, beat.heard_at,
    case when i.runtime_kind = 'long-running' then beat.heard_at + %(lease)s::interval end as lease_expires_at,
    coalesce(beat.heard_at + %(lease)s::interval > clock_timestamp(), false) as is_live,
    runs.last_success, last_run.at as last_run, last_run.run as last_report,
    (
        select count(*) from resolver.collector_heartbeat as f
        where f.tenant_id = i.tenant_id and f.instance_id = i.instance_id and f.run_outcome = 'failed'
            and f.at > coalesce(runs.last_other, '-infinity')
    )::integer as consecutive_failures
from resolver.collector_instance as i
cross join lateral (
    select max(h.received_at) as heard_at from resolver.collector_heartbeat as h
    where h.tenant_id = i.tenant_id and h.instance_id = i.instance_id
) as beat
cross join lateral (
    select max(h.at) filter (where h.run_outcome = 'succeeded') as last_success, max(h.at) as last_other
    from resolver.collector_heartbeat as h
    where h.tenant_id = i.tenant_id and h.instance_id = i.instance_id and h.run_outcome in ('succeeded', 'partial')
) as runs
left join lateral (
    select h.at, h.run from resolver.collector_heartbeat as h
    where h.tenant_id = i.tenant_id and h.instance_id = i.instance_id and h.run_outcome is not null
    order by h.at desc limit 1
) as last_run on true
where i.tenant_id = %(tenant_id)s and (%(instance_id)s::text is null or i.instance_id = %(instance_id)s)
order by i.instance_id;

-- name: find_checkpoint
-- One checkpoint.
select revision, state, deferred, updated_at from resolver.collector_checkpoint
where tenant_id = %(tenant_id)s and source_id = %(source_id)s and adapter = %(adapter)s
    and partition = %(partition)s;

-- name: first_checkpoint
-- Persist a checkpoint where there is none; nothing comes back where there is one.
insert into resolver.collector_checkpoint (tenant_id, source_id, adapter, partition, revision, state, deferred)
values (%(tenant_id)s, %(source_id)s, %(adapter)s, %(partition)s, 1, %(state)s, %(deferred)s)
on conflict (tenant_id, source_id, adapter, partition) do nothing
returning revision, state, deferred, updated_at;

-- name: next_checkpoint
-- Advance a checkpoint from the revision that the run had loaded; nothing comes back where it has another.
update resolver.collector_checkpoint
set revision = revision + 1, state = %(state)s, deferred = %(deferred)s, updated_at = clock_timestamp()
where tenant_id = %(tenant_id)s and source_id = %(source_id)s and adapter = %(adapter)s
    and partition = %(partition)s and revision = %(expected)s
returning revision, state, deferred, updated_at;

-- name: checkpoints
-- Every checkpoint of the tenant.
select source_id, adapter, partition, revision, state, jsonb_array_length(deferred) as deferred, updated_at
from resolver.collector_checkpoint where tenant_id = %(tenant_id)s
order by source_id, adapter, partition;
