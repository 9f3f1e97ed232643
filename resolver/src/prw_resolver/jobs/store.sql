-- name: defer
-- Put a resolution job into the queue, unless one of the capture's attempt group waits there already.
insert into resolver.procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
values (
    %(queue)s, %(queue)s, %(tenant_id)s || '/' || %(capture_id)s,
    %(tenant_id)s || '/' || %(capture_id)s || ':' || %(attempt_group)s::text,
    jsonb_build_object(
        'tenant_id', %(tenant_id)s::text, 'catalog_id', %(catalog_id)s::text, 'capture_id', %(capture_id)s::text,
        'attempt_group', %(attempt_group)s::integer
    )
)
on conflict (queueing_lock) where status = 'todo' do nothing
returning id;

-- name: done_stages
-- The stages of a capture that an attempt group has behind it.
select stage from resolver.job_inbox
where tenant_id = %(tenant_id)s and capture_id = %(capture_id)s and attempt_group = %(attempt_group)s;

-- name: mark_done
-- Mark a stage as done; nothing comes back where it was done already.
insert into resolver.job_inbox (tenant_id, job_id) values (%(tenant_id)s, %(job_id)s)
on conflict (tenant_id, job_id) do nothing
returning job_id;

-- name: fail
-- Count a failure of a stage; from the limit on, or at once where it is final, the stage is a dead letter.
insert into resolver.stage_failure as held (
    tenant_id, capture_id, attempt_group, stage, catalog_id, failures, code, detail, failed_at, dead_at
)
values (
    %(tenant_id)s, %(capture_id)s, %(attempt_group)s, %(stage)s, %(catalog_id)s, 1, %(code)s, %(detail)s,
    clock_timestamp(), case when %(final)s or %(most)s <= 1 then clock_timestamp() end
)
on conflict (tenant_id, capture_id, attempt_group, stage) do update
set failures = held.failures + 1, code = excluded.code, detail = excluded.detail, failed_at = excluded.failed_at,
    dead_at = coalesce(
        held.dead_at, case when %(final)s or held.failures + 1 >= %(most)s then clock_timestamp() end
    )
returning failures, dead_at is not null as dead;

-- name: stage_states
-- The stages done by any attempt group, and the open dead letter, of each named capture.
select
    named.capture_id,
    array(
        select distinct i.stage from resolver.job_inbox as i
        where i.tenant_id = resolver.current_tenant() and i.capture_id = named.capture_id
    ) as done,
    (
        select d.code from resolver.dead_letter as d
        where d.tenant_id = resolver.current_tenant() and d.capture_id = named.capture_id
        order by d.dead_at desc limit 1
    ) as dead_code
from unnest(%(capture_ids)s::text []) as named (capture_id);

-- name: dead_letters
-- Open dead letters of a tenant, oldest first, all or those of one capture.
select tenant_id, catalog_id, capture_id, attempt_group, stage, failures, code, detail, dead_at
from resolver.dead_letter
where tenant_id = %(tenant_id)s and (%(capture_id)s::text is null or capture_id = %(capture_id)s)
order by dead_at, capture_id
limit %(most)s;

-- name: next_group
-- The attempt group after every one that a capture has had.
select 1 + greatest(
    coalesce((
        select max(i.attempt_group) from resolver.job_inbox as i
        where i.tenant_id = %(tenant_id)s and i.capture_id = %(capture_id)s
    ), 0),
    coalesce((
        select max(f.attempt_group) from resolver.stage_failure as f
        where f.tenant_id = %(tenant_id)s and f.capture_id = %(capture_id)s
    ), 0)
) as attempt_group;

-- name: take_up
-- Close a dead letter in favour of a new attempt group; nothing comes back where another did so first.
update resolver.stage_failure
set redriven_as = %(new_group)s
where
    tenant_id = %(tenant_id)s and capture_id = %(capture_id)s and attempt_group = %(attempt_group)s
    and stage = %(stage)s and dead_at is not null and redriven_as is null
returning capture_id;

-- name: carry_over
-- What an attempt group had done before it failed counts for the next one, which starts at the stage that failed.
insert into resolver.job_inbox (tenant_id, job_id)
select tenant_id, capture_id || ':' || stage || ':' || %(new_group)s::text from resolver.job_inbox
where tenant_id = %(tenant_id)s and capture_id = %(capture_id)s and attempt_group = %(attempt_group)s
on conflict (tenant_id, job_id) do nothing;

-- name: without_job
-- Captures of every tenant whose stages are not done and that no job works on.
select tenant_id, catalog_id, capture_id, attempt_group from resolver.captures_without_job(%(age)s, %(most)s);

-- name: try_sweep
-- Whether this transaction is the one that sweeps the queue now.
select pg_try_advisory_xact_lock(%(key)s) as mine;

-- name: waiting
-- How many jobs wait and how many are worked on, as far as the transaction's tenant may see.
select
    count(*) filter (where status = 'todo') as waiting,
    count(*) filter (where status = 'doing') as working
from resolver.procrastinate_jobs;
