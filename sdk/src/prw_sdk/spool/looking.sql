-- name: items_page
-- A page of items in the order of their identity, from after one of them.
SELECT * FROM items
WHERE (tenant, source_id, native_id) > (:after_tenant, :after_source, :after_item)
  AND (:source_id IS NULL OR source_id = :source_id)
  AND (:outcome IS NULL OR outcome = :outcome)
  AND (:code IS NULL OR code = :code)
ORDER BY tenant, source_id, native_id LIMIT :limit;

-- name: last_runs
-- The newest ended run of each source, and what is there to show for it: items settled in it or later, items that
-- it found put off or set aside, captures that it kept.
SELECT runs.tenant, runs.source_id, runs.generation, runs.started_at, runs.finished_at, runs.planned,
       runs.code,
       (SELECT count(*) FROM items
        WHERE items.tenant = runs.tenant AND items.source_id = runs.source_id
          AND (items.generation >= runs.generation OR items.outcome IN ('retry_at', 'poison'))
       ) AS settled,
       (SELECT count(*) FROM captures
        WHERE captures.tenant = runs.tenant AND captures.source_id = runs.source_id
          AND captures.generation = runs.generation) AS kept
FROM runs
WHERE runs.finished_at IS NOT NULL AND runs.generation = (
    SELECT max(generation) FROM runs AS newest
    WHERE newest.tenant = runs.tenant AND newest.source_id = runs.source_id
      AND newest.finished_at IS NOT NULL)
ORDER BY runs.tenant, runs.source_id;

-- name: unfinished_runs
-- Runs that have not ended.
SELECT tenant, source_id, generation, started_at, finished_at, planned, code, 0 AS settled, 0 AS kept
FROM runs WHERE finished_at IS NULL ORDER BY tenant, source_id;

-- name: known_sources
-- Every tenant and source that was ever run.
SELECT DISTINCT tenant, source_id FROM runs ORDER BY tenant, source_id;

-- name: checkpoint_ages
-- Every checkpoint, when it was advanced last, and the end of the last run that ended well.
SELECT tenant, source_id, adapter, partition, revision, updated_at,
       (SELECT max(finished_at) FROM runs
        WHERE runs.tenant = checkpoints.tenant AND runs.source_id = checkpoints.source_id
          AND runs.code IS NULL) AS finished_at
FROM checkpoints ORDER BY tenant, source_id, adapter, partition;

-- name: count_codes
-- Why captures are held or refused, and items set aside or put off, and how many.
SELECT source_id, 'held' AS state, NULL AS code, count(*) AS n FROM captures
WHERE state = 'held' AND NOT EXISTS (
    SELECT 1 FROM runs
    WHERE runs.tenant = captures.tenant AND runs.source_id = captures.source_id
      AND runs.generation = captures.generation AND runs.finished_at IS NULL)
GROUP BY source_id
UNION ALL
SELECT source_id, 'refused', code, count(*) FROM captures
WHERE state = 'refused' GROUP BY source_id, code
UNION ALL
SELECT source_id, 'poison', code, count(*) FROM items
WHERE outcome = 'poison' GROUP BY source_id, code
ORDER BY 1, 2, 3;

-- name: capture_at
-- The capture of an item at a moment.
SELECT * FROM captures
WHERE tenant = :tenant AND source_id = :source_id AND native_id = :native_id
  AND captured_at = :captured_at;

-- name: refused_captures
-- Captures of a source that the resolver will not take, oldest first.
SELECT * FROM captures
WHERE state = 'refused' AND tenant = :tenant AND source_id = :source_id ORDER BY row LIMIT :limit;
