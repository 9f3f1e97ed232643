-- name: add_extraction
-- Keep how a reading ended.
insert into resolver.extraction (
    tenant_id, capture_id, attempt_group, adapter_name, adapter_version, outcome, detail
)
values (
    %(tenant_id)s, %(capture_id)s, %(attempt_group)s, %(adapter_name)s, %(adapter_version)s, %(outcome)s, %(detail)s
);

-- name: add_records
-- Keep the records of a reading, all at once.
insert into resolver.record (tenant_id, capture_id, attempt_group, record_id, ordinal, listing_key)
select %(tenant_id)s, %(capture_id)s, %(attempt_group)s, given.record_id, given.ordinal, given.listing_key
from jsonb_to_recordset(%(rows)s) as given (record_id text, ordinal integer, listing_key text);

-- name: add_claims
-- Keep the claims of a reading, all at once.
insert into resolver.claim (
    tenant_id, capture_id, attempt_group, record_id, ordinal, attribute, value_as_stated, part_role, sha256, selector,
    origin, is_merchant
)
select
    %(tenant_id)s, %(capture_id)s, %(attempt_group)s, given.record_id, given.ordinal, given.attribute,
    given.value_as_stated, given.part_role, given.sha256, given.selector, given.origin, given.is_merchant
from jsonb_to_recordset(%(rows)s) as given (
    record_id text, ordinal integer, attribute text, value_as_stated text, part_role text, sha256 text,
    selector jsonb, origin text, is_merchant boolean
);

-- name: find_extraction
-- The newest reading up to an attempt group.
select attempt_group, adapter_name, adapter_version, outcome, detail from resolver.extraction
where tenant_id = %(tenant_id)s and capture_id = %(capture_id)s and attempt_group <= %(attempt_group)s
order by attempt_group desc limit 1;

-- name: records
-- The records of a reading, in the order in which they were read.
select record_id, listing_key from resolver.record
where tenant_id = %(tenant_id)s and capture_id = %(capture_id)s and attempt_group = %(attempt_group)s
order by ordinal;

-- name: claims
-- The claims of a reading, in the order in which they were made.
select record_id, ordinal, attribute, value_as_stated, part_role, sha256, selector, origin, is_merchant
from resolver.claim
where tenant_id = %(tenant_id)s and capture_id = %(capture_id)s and attempt_group = %(attempt_group)s
order by record_id, ordinal;

-- name: add_normalisation
-- Keep that a reading was normalised.
insert into resolver.normalisation (tenant_id, capture_id, attempt_group, extraction_group, generation)
values (%(tenant_id)s, %(capture_id)s, %(attempt_group)s, %(extraction_group)s, %(generation)s);

-- name: add_normalised_records
-- Keep the records of a reading in the vocabulary's terms, all at once.
insert into resolver.normalised_record (
    tenant_id, capture_id, attempt_group, record_id, extraction_group, class_id, title, url, has_merchant, keys,
    ambiguous, unmapped, unreadable
)
select
    %(tenant_id)s, %(capture_id)s, %(attempt_group)s, given.record_id, %(extraction_group)s, given.class_id,
    given.title, given.url, given.has_merchant, given.keys, given.ambiguous, given.unmapped, given.unreadable
from jsonb_to_recordset(%(rows)s) as given (
    record_id text, class_id text, title text, url text, has_merchant boolean, keys jsonb, ambiguous text [],
    unmapped text [], unreadable text []
);

-- name: add_normalised_values
-- Keep the values of a reading's records, all at once.
insert into resolver.normalised_value (
    tenant_id, catalog_id, capture_id, attempt_group, record_id, attribute_key, definition_version, value, unit, basis,
    extraction_group, claim_ordinal
)
select
    %(tenant_id)s, %(catalog_id)s, %(capture_id)s, %(attempt_group)s, given.record_id, given.attribute_key,
    given.definition_version, given.value, given.unit, given.basis, %(extraction_group)s, given.claim_ordinal
from jsonb_to_recordset(%(rows)s) as given (
    record_id text, attribute_key text, definition_version integer, value text, unit text, basis text,
    claim_ordinal integer
);

-- name: find_normalisation
-- The newest normalising up to an attempt group.
select attempt_group, extraction_group, generation from resolver.normalisation
where tenant_id = %(tenant_id)s and capture_id = %(capture_id)s and attempt_group <= %(attempt_group)s
order by attempt_group desc limit 1;

-- name: normalised_records
-- The records of a normalising, in the order in which they were read.
select n.record_id, r.listing_key, n.class_id, n.title, n.url, n.has_merchant, n.keys, n.ambiguous
from resolver.normalised_record as n
inner join resolver.record as r
    on
        r.tenant_id = n.tenant_id and r.capture_id = n.capture_id and r.attempt_group = n.extraction_group
        and r.record_id = n.record_id
where n.tenant_id = %(tenant_id)s and n.capture_id = %(capture_id)s and n.attempt_group = %(attempt_group)s
order by r.ordinal;

-- name: normalised_values
-- The values of a normalising, each with the claim that it rests on.
select
    v.record_id, v.attribute_key, v.definition_version, v.value, v.unit, v.basis, v.claim_ordinal, c.attribute,
    c.value_as_stated, c.part_role, c.sha256, c.selector, c.origin
from resolver.normalised_value as v
left join resolver.claim as c
    on
        c.tenant_id = v.tenant_id and c.capture_id = v.capture_id and c.attempt_group = v.extraction_group
        and c.record_id = v.record_id and c.ordinal = v.claim_ordinal
where v.tenant_id = %(tenant_id)s and v.capture_id = %(capture_id)s and v.attempt_group = %(attempt_group)s
order by v.record_id, v.attribute_key;

-- name: outcomes
-- How the newest reading of each named capture ended, with how many records.
select distinct on (e.capture_id)
    e.capture_id, e.outcome, e.detail,
    (
        select count(*) from resolver.record as r
        where r.tenant_id = e.tenant_id and r.capture_id = e.capture_id and r.attempt_group = e.attempt_group
    ) as records
from resolver.extraction as e
where e.tenant_id = %(tenant_id)s and e.capture_id = any(%(capture_ids)s)
order by e.capture_id, e.attempt_group desc;
