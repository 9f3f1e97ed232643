-- name: trusted
-- Whether a source may introduce items by rule.
select trusted_to_introduce
  from resolver.source
 where tenant_id = %(tenant_id)s and source_id = %(source_id)s;

-- name: outcomes
-- What became of the records of captures.
select capture_id, record_id, outcome, case_id, code
  from resolver.record_outcome
 where tenant_id = %(tenant_id)s and capture_id = any(%(capture_ids)s)
 order by capture_id, record_id;

-- name: follow_ups_due
-- The catalogues that have cases to look at again, or releases to write.
select tenant_id, catalog_id from resolver.follow_ups_due();
