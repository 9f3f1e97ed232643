-- Extraction: what adapters read out of stored evidence, and what that means under the published vocabulary.
-- depends: 0005.vocabulary

set local role prw_owner;

-- One reading of a capture by an attempt group; a later group reads again and leaves this one as it is.
create table resolver.extraction (
    tenant_id text not null,
    capture_id text not null,
    attempt_group integer not null check (attempt_group >= 0),
    adapter_name text not null,
    adapter_version text not null,
    outcome text not null check (outcome in ('records', 'not_a_record', 'absent')),
    -- What the adapter said where it found no record.
    detail text not null,
    extracted_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, capture_id, attempt_group),
    foreign key (tenant_id, capture_id) references resolver.capture
);

create table resolver.record (
    tenant_id text not null,
    capture_id text not null,
    attempt_group integer not null,
    record_id text not null check (record_id <> ''),
    ordinal integer not null check (ordinal >= 0),
    listing_key text not null check (listing_key <> ''),
    primary key (tenant_id, capture_id, attempt_group, record_id),
    foreign key (tenant_id, capture_id, attempt_group) references resolver.extraction
);

-- One statement of a source, exactly as it stands in the evidence (INV-05).
create table resolver.claim (
    tenant_id text not null,
    capture_id text not null,
    attempt_group integer not null,
    record_id text not null,
    ordinal integer not null check (ordinal >= 0),
    attribute text not null,
    value_as_stated text not null,
    part_role text not null,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    selector jsonb not null check (jsonb_typeof(selector) = 'object'),
    -- A model's claim is advice; no automatic decision rests on it.
    origin text not null check (origin in ('adapter', 'model')),
    -- The claim that names the record's merchant (rule 15).
    is_merchant boolean not null,
    primary key (tenant_id, capture_id, attempt_group, record_id, ordinal),
    foreign key (tenant_id, capture_id, attempt_group, record_id) references resolver.record,
    foreign key (tenant_id, sha256) references resolver.artifact
);

create unique index claim_merchant
on resolver.claim (tenant_id, capture_id, attempt_group, record_id) where is_merchant;

-- One normalising of a reading, which may be of an earlier attempt group.
create table resolver.normalisation (
    tenant_id text not null,
    capture_id text not null,
    attempt_group integer not null check (attempt_group >= 0),
    extraction_group integer not null,
    generation integer not null check (generation > 0),
    normalised_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, capture_id, attempt_group),
    foreign key (tenant_id, capture_id, extraction_group) references resolver.extraction
);

-- A record as it goes to identity: class, keys, and what stayed open.
create table resolver.normalised_record (
    tenant_id text not null,
    capture_id text not null,
    attempt_group integer not null,
    record_id text not null,
    extraction_group integer not null,
    class_id text,
    title text not null,
    url text not null,
    -- Whether the record names its merchant (rule 15); the name is the value of offer:seller.
    has_merchant boolean not null,
    -- Identity keys, each with rule, class, generation, hash and canonical form.
    keys jsonb not null check (jsonb_typeof(keys) = 'array'),
    -- Attributes of which the record says several things that differ, or something that cannot be read.
    ambiguous text [] not null,
    -- Attributes that no published definition has, or none of the record's class.
    unmapped text [] not null,
    -- Statements that could not be read, with the reason.
    unreadable text [] not null,
    primary key (tenant_id, capture_id, attempt_group, record_id),
    foreign key (tenant_id, capture_id, attempt_group) references resolver.normalisation,
    foreign key (tenant_id, capture_id, extraction_group, record_id) references resolver.record
);

create table resolver.normalised_value (
    tenant_id text not null,
    catalog_id text not null,
    capture_id text not null,
    attempt_group integer not null,
    record_id text not null,
    attribute_key text not null,
    definition_version integer not null,
    value text not null check (value <> ''),
    unit text not null,
    basis text not null check (basis in ('stated', 'hint', 'default')),
    -- The claim it rests on; none for a default.
    extraction_group integer not null,
    claim_ordinal integer,
    primary key (tenant_id, capture_id, attempt_group, record_id, attribute_key),
    foreign key (tenant_id, capture_id, attempt_group, record_id) references resolver.normalised_record,
    foreign key (tenant_id, catalog_id, attribute_key, definition_version)
    references resolver.attribute_definition,
    foreign key (tenant_id, capture_id, extraction_group, record_id, claim_ordinal) references resolver.claim,
    check ((basis = 'default') = (claim_ordinal is null))
);

call resolver.protect('resolver.extraction');
call resolver.protect('resolver.record');
call resolver.protect('resolver.claim');
call resolver.protect('resolver.normalisation');
call resolver.protect('resolver.normalised_record');
call resolver.protect('resolver.normalised_value');

-- What was read is never changed: another reading is another attempt group.
grant select, insert on resolver.extraction, resolver.record, resolver.claim, resolver.normalisation,
    resolver.normalised_record, resolver.normalised_value to resolver_app;

reset role;
