-- transactional: false
CREATE INDEX CONCURRENTLY IF NOT EXISTS note_body ON sample.note (tenant_id, body);
