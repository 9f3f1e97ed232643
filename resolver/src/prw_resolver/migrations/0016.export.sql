-- Exports: snapshots of accepted state, with the objects that they are written to.
-- depends: 0015.retention

set local role prw_owner;

create table resolver.export (
    tenant_id      text        not null,
    catalog_id     text        not null,
    export_id      text        not null,
    history_epoch  bigint      not null,
    principal      text        not null,
    client_token   text        not null,
    lease_id       text        not null,
    status         text        not null default 'running' check (status in ('running', 'ready', 'failed', 'expired')),
    -- The position that the state is of; null until it is read.
    position       bigint,
    expected       bigint      not null default 0 check (expected >= 0),
    schema_version integer     not null,
    digest         text        not null default '',
    code           text        not null default '',
    created_at     timestamptz not null default clock_timestamp(),
    -- The exporter says here that it lives; one that does not for a while is gone.
    touched_at     timestamptz not null default clock_timestamp(),
    primary key (tenant_id, catalog_id, export_id),
    unique (tenant_id, catalog_id, principal, client_token),
    foreign key (tenant_id, catalog_id, history_epoch, lease_id) references resolver.stream_lease,
    check (status <> 'ready' or position is not null and digest <> '')
);

create table resolver.export_object (
    tenant_id  text   not null,
    catalog_id text   not null,
    export_id  text   not null,
    name       text   not null,
    kind       text   not null,
    rows       bigint not null check (rows >= 0),
    bytes      bigint not null check (bytes > 0),
    sha256     text   not null check (sha256 ~ '^[0-9a-f]{64}$'),
    primary key (tenant_id, catalog_id, export_id, name),
    foreign key (tenant_id, catalog_id, export_id) references resolver.export
);

call resolver.protect('resolver.export');
call resolver.protect('resolver.export_object');
grant select, insert on resolver.export, resolver.export_object to resolver_app;
grant update (status, position, expected, digest, code, touched_at) on resolver.export to resolver_app;

reset role;
