-- What the consumer has seen of its stream, and how far it has processed it (AW-04).
-- Keys: the tenant first, then the stream with its epoch, then the generation that consumes.

create table product.progress (
    tenant_id text not null,
    catalog_id text not null,
    history_epoch bigint not null,
    generation integer not null,
    -- Every position at or below is processed: applied, stale or a duplicate.
    position bigint not null default 0 check (position >= 0),
    -- Inbox rows at or below are gone, or were never there (a snapshot's position).
    inbox_floor bigint not null default 0 check (inbox_floor >= 0),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, history_epoch, generation),
    foreign key (tenant_id, catalog_id, generation, history_epoch)
        references product.generation (tenant_id, catalog_id, generation, history_epoch),
    check (inbox_floor <= position)
);
call product.protect('product.progress');
grant select, insert, update on product.progress to product_app;

create table product.inbox (
    tenant_id text not null,
    catalog_id text not null,
    history_epoch bigint not null,
    generation integer not null,
    position bigint not null check (position >= 1),
    -- None for an event that cannot be decoded.
    event_id text,
    digest bytea not null check (octet_length(digest) = 32),
    outcome text not null
        check (outcome in ('applied', 'stale', 'duplicate', 'parked', 'poison')),
    received_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, history_epoch, generation, position)
);
create unique index inbox_event_once on product.inbox
    (tenant_id, catalog_id, history_epoch, generation, event_id)
    where outcome <> 'duplicate';
call product.protect('product.inbox');
grant select, insert, update on product.inbox to product_app;

create table product.parked (
    tenant_id text not null,
    catalog_id text not null,
    history_epoch bigint not null,
    generation integer not null,
    position bigint not null,
    aggregate_type text not null,
    aggregate_id text not null,
    committed_at timestamptz not null,
    event bytea not null,
    parked_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, history_epoch, generation, position)
);
call product.protect('product.parked');
grant select, insert, delete on product.parked to product_app;

-- Which aggregates a parked event waits for, found from the aggregate's side.
create table product.parked_need (
    tenant_id text not null,
    catalog_id text not null,
    history_epoch bigint not null,
    generation integer not null,
    needed_type text not null,
    needed_id text not null,
    position bigint not null,
    needed_revision bigint not null,
    primary key (tenant_id, catalog_id, history_epoch, generation,
        needed_type, needed_id, position)
);
create index parked_need_position on product.parked_need
    (tenant_id, catalog_id, history_epoch, generation, position);
call product.protect('product.parked_need');
grant select, insert, delete on product.parked_need to product_app;

-- Events that this consumer refuses, kept whole for an operator; each holds progress.
create table product.dead_letter (
    tenant_id text not null,
    catalog_id text not null,
    history_epoch bigint not null,
    generation integer not null,
    position bigint not null,
    digest bytea not null,
    code text not null,
    message text not null,
    event bytea not null,
    first_seen_at timestamptz not null default clock_timestamp(),
    last_seen_at timestamptz not null default clock_timestamp(),
    times integer not null default 1,
    -- Set when the same position was applied after all, for example after an upgrade.
    resolved_at timestamptz,
    primary key (tenant_id, catalog_id, history_epoch, generation, position, digest)
);
call product.protect('product.dead_letter');
grant select, insert, update on product.dead_letter to product_app;

-- Events of fenced, older epochs: audited, and ignored for ever.
create table product.ignored_event (
    tenant_id text not null,
    catalog_id text not null,
    history_epoch bigint not null,
    position bigint not null,
    digest bytea not null,
    event_id text not null,
    -- The epoch that this consumer followed when the event came.
    followed_epoch bigint not null,
    ignored_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, history_epoch, position, digest)
);
call product.protect('product.ignored_event');
grant select, insert on product.ignored_event to product_app;

-- How following goes, as the follower last told: for status, and for an operator after it ended.
create table product.following (
    tenant_id text not null,
    catalog_id text not null,
    condition text not null check (condition in ('following', 'waiting', 'stopped')),
    code text not null,
    message text not null,
    told_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id)
);
call product.protect('product.following');
grant select, insert, update on product.following to product_app;

select product.create_generation(1);

analyze product.inbox, product.parked, product.parked_need, product.progress;
