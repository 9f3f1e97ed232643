-- name: keep_reading
-- What was read of a capture, in place of what was known.
INSERT INTO readings (row, version, body) VALUES (:row, :version, :body)
ON CONFLICT (row) DO UPDATE SET version = excluded.version, body = excluded.body;

-- name: find_readings
-- What was read of some captures.
SELECT row, version, body FROM readings WHERE row IN (SELECT value FROM json_each(:rows));
