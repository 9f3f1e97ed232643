-- name: find
-- The metadata of each named artifact that the tenant has stored.
select sha256, bytes, media_type from resolver.artifact
where tenant_id = %(tenant_id)s and sha256 = any(%(digests)s);

-- name: add
-- Record that bytes are verified and durable; twice is once.
insert into resolver.artifact (tenant_id, sha256, bytes, media_type)
select %(tenant_id)s, held.sha256, held.bytes, held.media_type
from unnest(%(digests)s::text [], %(sizes)s::bigint [], %(media_types)s::text [])
with ordinality as held (sha256, bytes, media_type, ordinal)
order by held.ordinal
on conflict (tenant_id, sha256) do nothing;
