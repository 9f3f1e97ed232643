-- name: owners
-- Which active items own these keys; driven by the keys, whatever the table's statistics say.
select identity_hash, item_id
  from resolver.catalog_item_key
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and class_id = %(class_id)s
   and generation = %(generation)s and identity_hash = any(%(hashes)s) and status in ('ready', 'active');

-- name: items
-- Items with their attributes and keys, as one JSON value each.
select i.item_id, i.class_id, i.status, i.revision, i.title, i.successors,
       coalesce((select jsonb_agg(jsonb_build_object('key', a.attribute_key, 'value', a.value, 'unit', a.unit,
                        'definition_version', a.definition_version, 'basis', a.basis) order by a.attribute_key)
                   from resolver.catalog_item_attribute a
                  where a.tenant_id = i.tenant_id and a.catalog_id = i.catalog_id and a.item_id = i.item_id),
                '[]') as attributes,
       coalesce((select jsonb_agg(jsonb_build_object('rule', k.rule, 'class_id', k.class_id,
                        'generation', k.generation, 'identity_hash', k.identity_hash)
                        order by k.generation, k.rule, k.identity_hash)
                   from resolver.catalog_item_key k
                  where k.tenant_id = i.tenant_id and k.catalog_id = i.catalog_id and k.item_id = i.item_id
                    and k.status in ('ready', 'active')), '[]') as keys
  from resolver.catalog_item i
 where i.tenant_id = %(tenant_id)s and i.catalog_id = %(catalog_id)s and i.item_id = any(%(item_ids)s);

-- name: mapping
-- The one mapping of a listing.
select listing_id, revision, item_id, item_revision, status, source_id, listing_key, merchant_id, url, title,
       observed_at
  from resolver.listing_mapping
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and listing_id = %(listing_id)s;

-- name: mappings_of_target
-- The active mappings of one planned target: its own listing, and the listings that stand on its page. The range
-- holds them all, since '$' comes right after '#'; it is what the index is searched by.
select listing_id, revision, item_id, item_revision, status, source_id, listing_key, merchant_id, url, title,
       observed_at
  from resolver.listing_mapping
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and source_id = %(source_id)s
   and listing_key collate "C" >= %(target)s and listing_key collate "C" < %(target)s || '$'
   and (listing_key = %(target)s or starts_with(listing_key, %(target)s || '#')) and status = 'active'
 order by listing_key;

-- name: mapping_evidence
-- What a listing's mapping rests on.
select evidence from resolver.listing_mapping
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and listing_id = %(listing_id)s;

-- name: mappings_of_item
-- The active mappings of an item, with the trust of their source: the trusted ones first.
select m.listing_id, m.revision, m.item_id, m.item_revision, m.status, m.source_id, m.listing_key, m.merchant_id,
       m.url, m.title, m.observed_at
  from resolver.listing_mapping m
  join resolver.source s on s.tenant_id = m.tenant_id and s.source_id = m.source_id
 where m.tenant_id = %(tenant_id)s and m.catalog_id = %(catalog_id)s and m.item_id = %(item_id)s
   and m.status = 'active'
 order by s.trusted_to_introduce desc, m.listing_id;

-- name: merchant
-- One merchant.
select merchant_id, source_id, name, revision
  from resolver.merchant
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and merchant_id = %(merchant_id)s;

-- name: observation
-- The newest observation of a listing.
select listing_id, revision, amount::text as amount, currency, availability, observed_at
  from resolver.inventory_observation
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and listing_id = %(listing_id)s;

-- name: release
-- What of an item is public now.
select item_id, item_revision, revision, content
  from resolver.release
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and item_id = %(item_id)s;

-- name: item_evidence
-- The evidence of an item's newest revision, and the decision that it rests on.
select evidence, decision_id
  from resolver.catalog_item
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and item_id = %(item_id)s;

-- name: releases_due
-- Items whose public face may have to change.
select item_id, touched
  from resolver.release_due
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
 order by item_id
 limit %(limit)s;

-- name: release_not_due
-- Nothing of the item's public face changes: done, unless it was touched again.
delete from resolver.release_due
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and item_id = %(item_id)s
   and touched = %(touched)s;
