-- name: case
-- One case, whole.
select case_id, kind, status, revision, reason, listing_id, source_id, listing_key, title, record, candidates,
       evidence, evidence_digest, observed_at, opened_at
  from resolver.review_case
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and case_id = %(case_id)s;

-- name: case_elsewhere
-- Whether the case is another tenant's; the function sees ids only.
select resolver.review_case_is_elsewhere(%(case_id)s) as elsewhere;

-- name: open_case
-- The open case about a listing; there is one at most.
select case_id, kind, status, revision, reason, listing_id, source_id, listing_key, title, record, candidates,
       evidence, evidence_digest, observed_at, opened_at
  from resolver.review_case
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and listing_id = %(listing_id)s
   and status in ('awaiting_human', 'deferred');

-- name: settled
-- A person's last word on what a listing is, or else on whether it is gone, with the evidence that it was given on.
select d.action, c.evidence_digest, d.decision_id, c.observed_at
  from resolver.review_case c
  join resolver.decision d on d.tenant_id = c.tenant_id and d.case_id = c.case_id
 where c.tenant_id = %(tenant_id)s and c.catalog_id = %(catalog_id)s and c.listing_id = %(listing_id)s
   and (c.kind = 'retraction') = %(retraction)s and c.status = 'decided' and d.actor_kind = 'person' and d.action in ('accept', 'correct', 'reject')
 order by d.decided_at desc, d.decision_id desc
 limit 1;

-- name: list
-- Cases by age, after the last one of the page before.
select case_id, kind, status, revision, reason, listing_id, source_id, listing_key, title, record, candidates,
       evidence, evidence_digest, observed_at, opened_at
  from resolver.review_case
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s
   and (%(status)s::text is null or status = %(status)s) and (%(kind)s::text is null or kind = %(kind)s)
   and (opened_at, case_id) > (%(after_opened_at)s, %(after_case_id)s)
 order by opened_at, case_id
 limit %(limit)s;

-- name: history
-- The decisions taken on a case, oldest first.
select decision_id, case_revision, action, actor_kind, actor_id, rationale, decided_at
  from resolver.decision
 where tenant_id = %(tenant_id)s and case_id = %(case_id)s
 order by decided_at, decision_id;

-- name: woken
-- Open cases that a new key may answer.
select w.case_id, w.touched
  from resolver.review_wake w
 where w.tenant_id = %(tenant_id)s and w.catalog_id = %(catalog_id)s
 order by w.case_id
 limit %(limit)s;

-- name: unwake
-- The case needs no second look, unless it was woken again.
delete from resolver.review_wake
 where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and case_id = %(case_id)s
   and touched = %(touched)s;
