-- The ledger of a spool. Times are text in UTC with microseconds, so that text order is time order.

-- version: 1
CREATE TABLE runs (
    tenant      TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    generation  INTEGER NOT NULL CHECK (generation > 0),
    started_at  TEXT NOT NULL,
    finished_at TEXT,
    PRIMARY KEY (tenant, source_id, generation)
) STRICT, WITHOUT ROWID;

-- at most one unfinished run a source
CREATE UNIQUE INDEX runs_unfinished ON runs (tenant, source_id) WHERE finished_at IS NULL;

CREATE TABLE items (
    tenant      TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    native_id   TEXT NOT NULL,
    url         TEXT NOT NULL,
    outcome     TEXT NOT NULL
        CHECK (outcome IN ('stored', 'unchanged', 'absent', 'rejected', 'retry_at', 'poison')),
    code        TEXT,
    error       TEXT,
    attempts    INTEGER NOT NULL CHECK (attempts >= 0),
    retry_at    TEXT CHECK ((retry_at IS NOT NULL) = (outcome = 'retry_at')),
    fingerprint TEXT,
    generation  INTEGER NOT NULL,
    version     INTEGER NOT NULL CHECK (version > 0),
    updated_at  TEXT NOT NULL,
    PRIMARY KEY (tenant, source_id, native_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX items_due ON items (tenant, source_id, retry_at) WHERE retry_at IS NOT NULL;

CREATE TABLE captures (
    row         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    native_id   TEXT NOT NULL,
    captured_at TEXT NOT NULL,
    generation  INTEGER NOT NULL,
    body        BLOB NOT NULL,
    state       TEXT NOT NULL DEFAULT 'kept' CHECK (state IN ('kept', 'submitted', 'refused')),
    receipt_id  TEXT,
    code        TEXT,
    error       TEXT,
    CHECK ((state = 'submitted') = (receipt_id IS NOT NULL)),
    UNIQUE (tenant, source_id, native_id, captured_at),
    -- one run keeps one capture of an item, however often it is interrupted
    UNIQUE (tenant, source_id, native_id, generation)
) STRICT;

CREATE INDEX captures_kept ON captures (row) WHERE state = 'kept';

CREATE TABLE checkpoints (
    tenant     TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    adapter    TEXT NOT NULL,
    partition  TEXT NOT NULL,
    revision   INTEGER NOT NULL CHECK (revision > 0),
    state      BLOB NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant, source_id, adapter, partition)
) STRICT, WITHOUT ROWID;

-- version: 2
-- the tenant of the resolver that a tenant's captures of this spool are sent to
CREATE TABLE drains (
    tenant   TEXT NOT NULL PRIMARY KEY,
    bound_to TEXT NOT NULL,
    since    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- what the resolver said last of a submitted capture
CREATE TABLE receipts (
    row        INTEGER NOT NULL PRIMARY KEY REFERENCES captures (row),
    status     TEXT NOT NULL,
    checked_at TEXT NOT NULL
) STRICT;

-- version: 3
-- a capture may be held back until its run is judged; SQLite changes no CHECK, so the table is made anew,
-- and the one that refers to it as well
CREATE TABLE captures_3 (
    row         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    native_id   TEXT NOT NULL,
    captured_at TEXT NOT NULL,
    generation  INTEGER NOT NULL,
    body        BLOB NOT NULL,
    state       TEXT NOT NULL DEFAULT 'kept'
        CHECK (state IN ('held', 'kept', 'submitted', 'refused')),
    receipt_id  TEXT,
    code        TEXT,
    error       TEXT,
    CHECK ((state = 'submitted') = (receipt_id IS NOT NULL)),
    UNIQUE (tenant, source_id, native_id, captured_at),
    -- one run keeps one capture of an item, however often it is interrupted
    UNIQUE (tenant, source_id, native_id, generation)
) STRICT;

INSERT INTO captures_3 SELECT * FROM captures;

CREATE TABLE receipts_3 (
    row        INTEGER NOT NULL PRIMARY KEY REFERENCES captures_3 (row),
    status     TEXT NOT NULL,
    checked_at TEXT NOT NULL
) STRICT;

INSERT INTO receipts_3 SELECT * FROM receipts;

DROP TABLE receipts;

DROP TABLE captures;

ALTER TABLE captures_3 RENAME TO captures;

ALTER TABLE receipts_3 RENAME TO receipts;

CREATE INDEX captures_kept ON captures (row) WHERE state = 'kept';

CREATE INDEX captures_held ON captures (tenant, source_id) WHERE state = 'held';

-- how a run ended: what it had planned, and the code of its failure
ALTER TABLE runs ADD COLUMN planned INTEGER;

ALTER TABLE runs ADD COLUMN code TEXT;

-- what an unfinished run has read so far
CREATE TABLE tallies (
    tenant     TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    generation INTEGER NOT NULL,
    body       BLOB NOT NULL,
    PRIMARY KEY (tenant, source_id)
) STRICT, WITHOUT ROWID;

-- what the last good run of a source was like
CREATE TABLE profiles (
    tenant     TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    adapter    TEXT NOT NULL,
    version    TEXT NOT NULL,
    generation INTEGER NOT NULL,
    body       BLOB NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant, source_id, adapter)
) STRICT, WITHOUT ROWID;

-- what was read of a capture when somebody last counted on it, and by which version of its adapter
CREATE TABLE readings (
    row     INTEGER NOT NULL PRIMARY KEY REFERENCES captures (row),
    version TEXT NOT NULL,
    body    BLOB NOT NULL
) STRICT;

-- the revision that a checkpoint had at the resolver when it was the same here and there
CREATE TABLE synced (
    tenant    TEXT NOT NULL,
    source_id TEXT NOT NULL,
    adapter   TEXT NOT NULL,
    partition TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    PRIMARY KEY (tenant, source_id, adapter, partition)
) STRICT, WITHOUT ROWID;
