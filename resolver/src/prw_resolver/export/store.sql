-- name: insert_export
-- Put a new export on record; returns nothing where its creator has one of that token.
insert into resolver.export (tenant_id, catalog_id, export_id, history_epoch, principal, client_token, lease_id,
       schema_version)
values (%(tenant_id)s, %(catalog_id)s, %(export_id)s, %(history_epoch)s, %(principal)s, %(client_token)s,
       %(lease_id)s, %(schema_version)s)
on conflict (tenant_id, catalog_id, principal, client_token) do nothing
returning export_id;

-- name: find_export
-- An export of this creator, by its id or its token, with how its lease stands.
select e.export_id, e.history_epoch, e.principal, e.client_token, e.lease_id, e.status, e.position, e.expected,
       e.schema_version, e.digest, e.code, l.expires_at,
       l.ended_at is null and l.expires_at > clock_timestamp() as lease_lasts,
       clock_timestamp() - e.touched_at as silent
  from resolver.export e
  join resolver.stream_lease l using (tenant_id, catalog_id, history_epoch, lease_id)
 where e.tenant_id = %(tenant_id)s and e.catalog_id = %(catalog_id)s and e.principal = %(principal)s
   and (e.export_id = %(export_id)s or e.client_token = %(client_token)s);

-- name: list_exports
-- All exports of a catalogue that still have files, the newest first.
select e.export_id, e.history_epoch, e.principal, e.client_token, e.lease_id, e.status, e.position, e.expected,
       e.schema_version, e.digest, e.code, l.expires_at,
       l.ended_at is null and l.expires_at > clock_timestamp() as lease_lasts,
       clock_timestamp() - e.touched_at as silent
  from resolver.export e
  join resolver.stream_lease l using (tenant_id, catalog_id, history_epoch, lease_id)
 where e.tenant_id = %(tenant_id)s and e.catalog_id = %(catalog_id)s and e.status <> 'expired'
 order by e.created_at desc, e.export_id desc;

-- name: begin_export
-- Note the position and how many aggregates there will be.
update resolver.export set position = %(position)s, expected = %(expected)s, touched_at = clock_timestamp()
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and export_id = %(export_id)s;

-- name: put_object
-- Put an object on record once its bytes are durable.
insert into resolver.export_object (tenant_id, catalog_id, export_id, name, kind, rows, bytes, sha256)
values (%(tenant_id)s, %(catalog_id)s, %(export_id)s, %(name)s, %(kind)s, %(rows)s, %(bytes)s, %(sha256)s);

-- name: touch_export
-- Say that the exporter lives.
update resolver.export set touched_at = clock_timestamp()
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and export_id = %(export_id)s;

-- name: end_export
-- Let a running export be ready or failed; one that is not running stays as it is.
update resolver.export
   set status = %(status)s, digest = %(digest)s, code = %(code)s, touched_at = clock_timestamp()
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and export_id = %(export_id)s
   and status = 'running';

-- name: expire_export
-- Note that an export's files are gone.
update resolver.export set status = 'expired', touched_at = clock_timestamp()
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and export_id = %(export_id)s;

-- name: objects
-- The objects of an export, in the order of their names.
select name, kind, rows, bytes, sha256 from resolver.export_object
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and export_id = %(export_id)s
 order by name;

-- name: ranges
-- Where the ids of each kind of aggregate are cut into pieces of so many, and how many there are.
select aggregate_type, count(*) as aggregates,
       coalesce(array_agg(aggregate_id order by aggregate_id) filter (where n %% %(size)s = 0), '{}') as cuts
  from (select aggregate_type, aggregate_id, row_number() over (partition by aggregate_type order by aggregate_id) as n
          from resolver.catalog_revision
         where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and revision = 1
           and (history_epoch, position) <= (%(history_epoch)s, %(position)s)) a
 group by aggregate_type;

-- name: copy_applied_revision
-- The newest revision of every aggregate of a type, as of the position.
copy (
select tenant_id, catalog_id, aggregate_type, aggregate_id, max(revision)
  from resolver.catalog_revision
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = %(type)s
   and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
   and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
 group by tenant_id, catalog_id, aggregate_type, aggregate_id
) to stdout (format binary);

-- name: copy_item_revision
-- Items at their newest revision, as of the position.
copy (
select distinct on (aggregate_id) tenant_id, catalog_id, aggregate_id, revision, state ->> 'class_id',
       lower(substr(state ->> 'status', length('ITEM_STATUS_') + 1)), state -> 'successors', state ->> 'title',
       state -> 'attributes', state -> 'keys'
  from resolver.catalog_revision
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'catalog_item'
   and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
   and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
 order by aggregate_id, revision desc
) to stdout (format binary);

-- name: copy_mapping_revision
-- Mappings at their newest revision, as of the position.
copy (
select distinct on (aggregate_id) tenant_id, catalog_id, aggregate_id, revision, state ->> 'item_id',
       (state ->> 'item_revision')::bigint, lower(substr(state ->> 'status', length('MAPPING_STATUS_') + 1)),
       state ->> 'source_id', state ->> 'listing_key', state ->> 'merchant_id', state ->> 'url', state ->> 'title',
       (state ->> 'observed_at')::timestamptz
  from resolver.catalog_revision
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'listing_mapping'
   and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
   and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
 order by aggregate_id, revision desc
) to stdout (format binary);

-- name: copy_released_mapping_revision
-- Mappings at a revision that a newest release names and that is not their newest one. A revision of a mapping is of
-- one item, and an item has one release, so that none comes twice.
copy (
with head as (
    select distinct on (aggregate_id) state
      from resolver.catalog_revision
     where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'release'
       and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
       and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
     order by aggregate_id, revision desc
)
select m.tenant_id, m.catalog_id, m.aggregate_id, m.revision, m.state ->> 'item_id',
       (m.state ->> 'item_revision')::bigint, lower(substr(m.state ->> 'status', length('MAPPING_STATUS_') + 1)),
       m.state ->> 'source_id', m.state ->> 'listing_key', m.state ->> 'merchant_id', m.state ->> 'url',
       m.state ->> 'title', (m.state ->> 'observed_at')::timestamptz
  from head h
 cross join lateral jsonb_to_recordset(h.state -> 'listings') as l (listing_id text, mapping_revision bigint)
  join resolver.catalog_revision m
    on m.tenant_id = %(tenant_id)s and m.catalog_id = %(catalog_id)s and m.aggregate_type = 'listing_mapping'
   and m.aggregate_id = l.listing_id and m.revision = l.mapping_revision
 where exists (
       select from resolver.catalog_revision n
        where n.tenant_id = %(tenant_id)s and n.catalog_id = %(catalog_id)s and n.aggregate_type = 'listing_mapping'
          and n.aggregate_id = l.listing_id and n.revision = l.mapping_revision + 1
          and (n.history_epoch, n.position) <= (%(history_epoch)s, %(position)s))
) to stdout (format binary);

-- name: copy_merchant
-- Merchants at their newest revision, as of the position.
copy (
select distinct on (aggregate_id) tenant_id, catalog_id, aggregate_id, revision, state ->> 'name',
       state ->> 'source_id'
  from resolver.catalog_revision
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'merchant'
   and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
   and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
 order by aggregate_id, revision desc
) to stdout (format binary);

-- name: copy_inventory
-- Observations at their newest revision, as of the position.
copy (
select distinct on (aggregate_id) tenant_id, catalog_id, aggregate_id, revision,
       (state -> 'price' ->> 'amount')::numeric, state -> 'price' ->> 'currency',
       replace(lower(substr(state ->> 'availability', length('AVAILABILITY_') + 1)), 'unspecified', ''),
       (state ->> 'observed_at')::timestamptz
  from resolver.catalog_revision
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'inventory_observation'
   and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
   and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
 order by aggregate_id, revision desc
) to stdout (format binary);

-- name: copy_public_item
-- Releases at their newest revision, as of the position.
copy (
select distinct on (aggregate_id) tenant_id, catalog_id, state ->> 'item_id', aggregate_id, state ->> 'class_id',
       state ->> 'title', state -> 'public_fields', (state ->> 'item_revision')::bigint, revision,
       case history_epoch when %(history_epoch)s then position else 0 end
  from resolver.catalog_revision
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'release'
   and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
   and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
 order by aggregate_id, revision desc
) to stdout (format binary);

-- name: copy_released_listing
-- The listings that these releases name.
copy (
select r.tenant_id, r.catalog_id, r.state ->> 'item_id', l.listing_id, l.mapping_revision, r.position
  from (select distinct on (aggregate_id) tenant_id, catalog_id, state,
               case history_epoch when %(history_epoch)s then position else 0 end as position
          from resolver.catalog_revision
         where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'release'
           and aggregate_id > %(after)s and (%(through)s::text is null or aggregate_id <= %(through)s)
           and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
         order by aggregate_id, revision desc) r
 cross join lateral jsonb_to_recordset(r.state -> 'listings') as l (listing_id text, mapping_revision bigint)
) to stdout (format binary);

-- name: copy_released_mapping
-- The greatest mapping revision at which any release, overtaken ones included, ever named a listing.
copy (
select tenant_id, catalog_id, l.listing_id, max(l.mapping_revision)
  from resolver.catalog_revision
 cross join lateral jsonb_to_recordset(state -> 'listings') as l (listing_id text, mapping_revision bigint)
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and aggregate_type = 'release'
   and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
 group by tenant_id, catalog_id, l.listing_id
) to stdout (format binary);

-- name: digest
-- The digest of each type of aggregate as of the position. The texts are those of the product's own statement.
select aggregate_type, count(*) as aggregates,
       bit_xor(('x' || encode(sha256(convert_to(canonical::text, 'UTF8')), 'hex'))::bit(256))::text as bits
  from (
select aggregate_type, jsonb_build_array(aggregate_id, revision) || case aggregate_type
       when 'catalog_item' then jsonb_build_array(state -> 'class_id',
            lower(substr(state ->> 'status', length('ITEM_STATUS_') + 1)), state -> 'successors', state -> 'title',
            state -> 'attributes', state -> 'keys')
       when 'listing_mapping' then jsonb_build_array(state -> 'item_id', state -> 'item_revision',
            lower(substr(state ->> 'status', length('MAPPING_STATUS_') + 1)), state -> 'source_id',
            state -> 'listing_key', state -> 'merchant_id', state -> 'url', state -> 'title',
            (extract(epoch from (state ->> 'observed_at')::timestamptz) * 1000000)::bigint)
       when 'merchant' then jsonb_build_array(state -> 'name', state -> 'source_id')
       when 'inventory_observation' then jsonb_build_array(
            trim_scale((state -> 'price' ->> 'amount')::numeric)::text, state -> 'price' -> 'currency',
            replace(lower(substr(state ->> 'availability', length('AVAILABILITY_') + 1)), 'unspecified', ''),
            (extract(epoch from (state ->> 'observed_at')::timestamptz) * 1000000)::bigint)
       when 'release' then jsonb_build_array(state -> 'item_id', state -> 'item_revision', state -> 'class_id',
            state -> 'title', state -> 'public_fields', (
            select coalesce(jsonb_agg(jsonb_build_array(l.listing_id, l.mapping_revision)
                                      order by l.listing_id collate "C"), '[]')
              from jsonb_to_recordset(state -> 'listings') as l (listing_id text, mapping_revision bigint)))
       end as canonical
  from (select distinct on (aggregate_type, aggregate_id) aggregate_type, aggregate_id, revision, state
          from resolver.catalog_revision
         where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
           and (history_epoch, position) <= (%(history_epoch)s, %(position)s)
         order by aggregate_type, aggregate_id, revision desc) newest) held
 group by aggregate_type;
