-- The doctor's login: it reads, for every tenant, what the invariants of a stream are about, and no content.
-- depends: 0016.export

set local role prw_owner;

grant select on resolver.stream_cursor, resolver.stream_retention, resolver.stream_consumer, resolver.stream_lease
to resolver_doctor;
grant select (tenant_id, catalog_id, history_epoch, position, event_id, aggregate_type, aggregate_id, revision,
    committed_at, published_at) on resolver.outbox to resolver_doctor;
grant select (tenant_id, catalog_id, aggregate_type, aggregate_id, revision, history_epoch, position)
on resolver.catalog_revision to resolver_doctor;
grant select (tenant_id, catalog_id, item_id, revision) on resolver.catalog_item to resolver_doctor;
grant select (tenant_id, catalog_id, merchant_id, revision) on resolver.merchant to resolver_doctor;
grant select (tenant_id, catalog_id, listing_id, revision) on resolver.listing_mapping to resolver_doctor;
grant select (tenant_id, catalog_id, listing_id, revision) on resolver.inventory_observation to resolver_doctor;
grant select (tenant_id, catalog_id, release_id, revision) on resolver.release to resolver_doctor;

do $$
declare
    v_table text;
begin
    foreach v_table in array array['stream_cursor', 'stream_retention', 'stream_consumer', 'stream_lease', 'outbox',
        'catalog_revision', 'catalog_item', 'merchant', 'listing_mapping', 'inventory_observation', 'release']
    loop
        execute format(
            'create policy doctor_reads on resolver.%I for select to resolver_doctor using (true)', v_table);
    end loop;
end $$;

reset role;
grant usage on schema resolver to resolver_doctor;
