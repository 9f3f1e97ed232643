-- name: unfinished_run
-- The run of a source that an earlier process left unfinished.
SELECT generation FROM runs
WHERE tenant = :tenant AND source_id = :source_id AND finished_at IS NULL;

-- name: last_generation
-- The newest generation of a source, 0 where there is none.
SELECT coalesce(max(generation), 0) AS generation FROM runs
WHERE tenant = :tenant AND source_id = :source_id;

-- name: start_run
-- Begin a generation.
INSERT INTO runs (tenant, source_id, generation, started_at)
VALUES (:tenant, :source_id, :generation, :now);

-- name: finish_run
-- End a generation; a second end changes nothing.
UPDATE runs SET finished_at = :now, planned = :planned, code = :code
WHERE tenant = :tenant AND source_id = :source_id AND generation = :generation
  AND finished_at IS NULL;

-- name: find_item
-- One item by its identity.
SELECT * FROM items
WHERE tenant = :tenant AND source_id = :source_id AND native_id = :native_id;

-- name: find_items
-- Those of some items that have a row.
SELECT * FROM items
WHERE tenant = :tenant AND source_id = :source_id
  AND native_id IN (SELECT value FROM json_each(:native_ids));

-- name: settle_item
-- Give an item its verdict, if nobody gave it a newer one meanwhile.
INSERT INTO items (tenant, source_id, native_id, url, outcome, code, error, attempts, retry_at,
                   fingerprint, generation, version, updated_at)
SELECT :tenant, :source_id, :native_id, :url, :outcome, :code, :error, :attempts, :retry_at,
       :fingerprint, :generation, 1, :now
WHERE :expected = 0 OR EXISTS (
    SELECT 1 FROM items
    WHERE tenant = :tenant AND source_id = :source_id AND native_id = :native_id)
ON CONFLICT (tenant, source_id, native_id) DO UPDATE
SET url = excluded.url, outcome = excluded.outcome, code = excluded.code, error = excluded.error,
    attempts = excluded.attempts, retry_at = excluded.retry_at,
    fingerprint = excluded.fingerprint, generation = excluded.generation,
    version = items.version + 1, updated_at = excluded.updated_at
WHERE items.version = :expected;

-- name: keep_capture
-- Keep the capture of an item.
INSERT INTO captures (tenant, source_id, native_id, captured_at, generation, body, state)
VALUES (:tenant, :source_id, :native_id, :captured_at, :generation, :body, :state);

-- name: last_capture
-- The newest capture of an item: the one that was kept last, since a clock may have been set back.
SELECT * FROM captures
WHERE tenant = :tenant AND source_id = :source_id AND native_id = :native_id
ORDER BY row DESC LIMIT 1;

-- name: release_run
-- Let what a run found be sent: held captures that are the newest of an item that the run has settled.
UPDATE captures SET state = 'kept'
WHERE state = 'held' AND tenant = :tenant AND source_id = :source_id
  AND EXISTS (
    SELECT 1 FROM items
    WHERE items.tenant = captures.tenant AND items.source_id = captures.source_id
      AND items.native_id = captures.native_id AND items.generation = :generation)
  AND NOT EXISTS (
    SELECT 1 FROM captures AS newer
    WHERE newer.tenant = captures.tenant AND newer.source_id = captures.source_id
      AND newer.native_id = captures.native_id AND newer.row > captures.row);

-- name: release_held
-- Let held captures be sent, whatever their runs came to; those of unfinished runs wait for their judgement.
UPDATE captures SET state = 'kept'
WHERE state = 'held'
  AND (:source_id IS NULL OR source_id = :source_id)
  AND (:native_id IS NULL OR native_id = :native_id)
  AND NOT EXISTS (
    SELECT 1 FROM runs
    WHERE runs.tenant = captures.tenant AND runs.source_id = captures.source_id
      AND runs.generation = captures.generation AND runs.finished_at IS NULL);

-- name: due_items
-- Items that were put off and whose time has come, the longest waiting first; also those put off by a clock that was
-- ahead of this one by more than a step.
SELECT * FROM items
WHERE tenant = :tenant AND source_id = :source_id AND retry_at IS NOT NULL
  AND (retry_at <= :now OR updated_at > :soon)
ORDER BY retry_at, native_id LIMIT :limit;

-- name: deferred_items
-- Items of a source that are put off or set aside.
SELECT * FROM items
WHERE tenant = :tenant AND source_id = :source_id AND outcome IN ('retry_at', 'poison')
ORDER BY native_id LIMIT :limit;

-- name: count_held
-- How many captures of a run are held.
SELECT count(*) AS n FROM captures
WHERE state = 'held' AND tenant = :tenant AND source_id = :source_id AND generation = :generation;

-- name: vanished_items
-- Items that the source had and that no plan has named since before this run, those asked for longest ago first.
SELECT * FROM items
WHERE tenant = :tenant AND source_id = :source_id AND generation < :generation
  AND outcome IN ('stored', 'unchanged')
ORDER BY updated_at, native_id LIMIT :limit;

-- name: troubled_items
-- Items that are put off or set aside, of every tenant and source.
SELECT * FROM items WHERE outcome IN ('retry_at', 'poison')
ORDER BY tenant, source_id, native_id LIMIT :limit;

-- name: revive_items
-- Give items that were put off or set aside a new budget, at once.
UPDATE items
SET outcome = 'retry_at', retry_at = :now, attempts = 0, version = version + 1, updated_at = :now
WHERE outcome IN ('poison', 'retry_at')
  AND (:source_id IS NULL OR source_id = :source_id)
  AND (:native_id IS NULL OR native_id = :native_id);

-- name: revive_captures
-- Let captures that the resolver refused be sent once more.
UPDATE captures SET state = 'kept', code = NULL, error = NULL
WHERE state = 'refused'
  AND (:source_id IS NULL OR source_id = :source_id)
  AND (:native_id IS NULL OR native_id = :native_id);

-- name: revive_receipts
-- Ask once more for receipts that the resolver did not let be read.
DELETE FROM receipts
WHERE status = 'unreadable' AND row IN (
  SELECT row FROM captures
  WHERE (:source_id IS NULL OR source_id = :source_id)
    AND (:native_id IS NULL OR native_id = :native_id));

-- name: kept_captures
-- A page of captures that are still to be sent, oldest first.
SELECT * FROM captures WHERE state = 'kept' AND row > :after ORDER BY row LIMIT :limit;

-- name: all_captures
-- A page of all captures, oldest first.
SELECT * FROM captures WHERE row > :after ORDER BY row LIMIT :limit;

-- name: mark_submitted
-- Note the receipt of a capture; a second receipt for it changes nothing.
UPDATE captures SET state = 'submitted', receipt_id = :receipt_id, code = NULL, error = NULL
WHERE row = :row AND state <> 'submitted';

-- name: mark_refused
-- Note that the resolver refused a capture for good.
UPDATE captures SET state = 'refused', code = :code, error = :error
WHERE row = :row AND state = 'kept';

-- name: count_outcomes
-- How many items of each source have each outcome.
SELECT source_id, outcome, count(*) AS n FROM items
WHERE :tenant IS NULL OR tenant = :tenant
GROUP BY source_id, outcome
ORDER BY source_id, outcome;

-- name: count_captures
-- How many captures of each source are in each state.
SELECT source_id, state, count(*) AS n FROM captures GROUP BY source_id, state
ORDER BY source_id, state;

-- name: find_checkpoint
-- One checkpoint.
SELECT revision, state FROM checkpoints
WHERE tenant = :tenant AND source_id = :source_id AND adapter = :adapter
  AND partition = :partition;

-- name: first_checkpoint
-- Persist a checkpoint where there is none.
INSERT INTO checkpoints (tenant, source_id, adapter, partition, revision, state, updated_at)
VALUES (:tenant, :source_id, :adapter, :partition, 1, :state, :now)
ON CONFLICT DO NOTHING;

-- name: next_checkpoint
-- Advance a checkpoint from the revision that the run had loaded.
UPDATE checkpoints SET revision = revision + 1, state = :state, updated_at = :now
WHERE tenant = :tenant AND source_id = :source_id AND adapter = :adapter
  AND partition = :partition AND revision = :expected;

-- name: kept_sources
-- The tenants and sources that have captures still to be sent.
SELECT DISTINCT tenant, source_id FROM captures WHERE state = 'kept' ORDER BY tenant, source_id;

-- name: bind_tenant
-- Note where the captures of a tenant are sent to, the first time that they are.
INSERT INTO drains (tenant, bound_to, since) VALUES (:tenant, :bound_to, :now)
ON CONFLICT DO NOTHING;

-- name: bound_tenant
-- Where the captures of a tenant are sent to.
SELECT bound_to FROM drains WHERE tenant = :tenant;

-- name: damaged_captures
-- A page of captures that were not sent because their bytes were damaged.
SELECT * FROM captures WHERE state = 'refused' AND code = 'EVIDENCE_DAMAGED' AND row > :after
ORDER BY row LIMIT :limit;

-- name: mend_capture
-- Let a capture whose bytes are whole again be sent.
UPDATE captures SET state = 'kept', code = NULL, error = NULL
WHERE row = :row AND state = 'refused' AND code = 'EVIDENCE_DAMAGED';

-- name: revive_damaged
-- Fetch items again whose bytes were damaged, unless the run that kept them still goes on.
UPDATE items
SET outcome = 'retry_at', retry_at = :now, attempts = 0, version = version + 1, updated_at = :now
WHERE outcome NOT IN ('poison', 'retry_at')
  AND (:source_id IS NULL OR source_id = :source_id)
  AND (:native_id IS NULL OR native_id = :native_id)
  AND EXISTS (
    SELECT 1 FROM captures
    WHERE captures.tenant = items.tenant AND captures.source_id = items.source_id
      AND captures.native_id = items.native_id
      AND captures.state = 'refused' AND captures.code = 'EVIDENCE_DAMAGED')
  AND NOT EXISTS (
    SELECT 1 FROM runs
    WHERE runs.tenant = items.tenant AND runs.source_id = items.source_id
      AND runs.finished_at IS NULL);

-- name: receipts_to_ask
-- A page of receipts whose status may still change and was not asked for lately; what is noted as asked for later than
-- that by more than a step was noted by a clock that was ahead.
SELECT captures.row, receipt_id FROM captures LEFT JOIN receipts ON receipts.row = captures.row
WHERE state = 'submitted' AND captures.row > :after
  AND (status IS NULL OR (status NOT IN ('resolved', 'rejected', 'unreadable')
                          AND (checked_at <= :before OR checked_at > :soon)))
ORDER BY captures.row LIMIT :limit;

-- name: note_receipt
-- Note what the resolver said of a receipt.
INSERT INTO receipts (row, status, checked_at) VALUES (:row, :status, :now)
ON CONFLICT (row) DO UPDATE SET status = excluded.status, checked_at = excluded.checked_at;

-- name: count_receipts
-- How many submitted captures of each source have each status, as far as it was asked for.
SELECT source_id, status, count(*) AS n
FROM receipts JOIN captures ON captures.row = receipts.row
GROUP BY source_id, status ORDER BY source_id, status;

-- name: keep_tally
-- What an unfinished run has read so far.
INSERT INTO tallies (tenant, source_id, generation, body)
VALUES (:tenant, :source_id, :generation, :body)
ON CONFLICT (tenant, source_id) DO UPDATE
SET generation = excluded.generation, body = excluded.body;

-- name: find_tally
-- What a run has read so far.
SELECT body FROM tallies
WHERE tenant = :tenant AND source_id = :source_id AND generation = :generation;

-- name: drop_tally
-- A run has ended, and its tally with it.
DELETE FROM tallies WHERE tenant = :tenant AND source_id = :source_id;

-- name: find_profile
-- What the last good run of a source was like, by an adapter.
SELECT version, generation, body FROM profiles
WHERE tenant = :tenant AND source_id = :source_id AND adapter = :adapter;

-- name: keep_profile
-- The last good run of a source; never an older one over a newer.
INSERT INTO profiles (tenant, source_id, adapter, version, generation, body, updated_at)
VALUES (:tenant, :source_id, :adapter, :version, :generation, :body, :now)
ON CONFLICT (tenant, source_id, adapter) DO UPDATE
SET version = excluded.version, generation = excluded.generation, body = excluded.body,
    updated_at = excluded.updated_at
WHERE profiles.generation <= excluded.generation;

-- name: checkpoints_of
-- The checkpoints of a tenant's source.
SELECT tenant, source_id, adapter, partition FROM checkpoints
WHERE tenant = :tenant AND source_id = :source_id ORDER BY adapter, partition;

-- name: synced_revision
-- The revision that a checkpoint had at the resolver when this spool's was the same.
SELECT revision FROM synced
WHERE tenant = :tenant AND source_id = :source_id AND adapter = :adapter AND partition = :partition;

-- name: note_synced
-- A checkpoint of this spool is now that of the resolver.
INSERT INTO synced (tenant, source_id, adapter, partition, revision)
VALUES (:tenant, :source_id, :adapter, :partition, :revision)
ON CONFLICT (tenant, source_id, adapter, partition) DO UPDATE SET revision = excluded.revision;
