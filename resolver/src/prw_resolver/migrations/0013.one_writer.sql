-- One writer of accepted state: the server's role may call `stream_commit` and write none of its tables itself (INV-06).
-- depends: 0012.collectors

set local role prw_owner;

-- It runs with its owner's rights now. Row-level security is forced for the owner too, so that it stays within the tenant
-- of the transaction, whatever tenant it is given.
alter function resolver.stream_commit(text, text, bigint, jsonb) security definer;
alter function resolver.stream_commit(text, text, bigint, jsonb) set search_path = resolver, pg_catalog, pg_temp;
revoke all on function resolver.stream_commit(text, text, bigint, jsonb) from public;
grant execute on function resolver.stream_commit(text, text, bigint, jsonb) to resolver_app;

revoke insert, update on resolver.catalog_item_attribute, resolver.catalog_item_key, resolver.merchant,
resolver.listing_mapping, resolver.inventory_observation, resolver.release from resolver_app;
revoke insert on resolver.catalog_item, resolver.catalog_revision from resolver_app;
revoke update (status, revision, title, successors, decision_id, evidence) on resolver.catalog_item from resolver_app;
revoke insert, update on resolver.release_due, resolver.review_wake from resolver_app;

revoke insert, update on resolver.review_case from resolver_app;
revoke insert, delete on resolver.review_case_key from resolver_app;
revoke insert on resolver.decision from resolver_app;
revoke insert, update on resolver.record_outcome from resolver_app;

revoke insert on resolver.outbox, resolver.stream_command from resolver_app;
revoke update on resolver.stream_cursor from resolver_app;

reset role;
