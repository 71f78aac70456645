-- A page of runs, newest first, without what they carry.
-- $1: only runs before this one, $2: look at no more, $3: their statuses as a JSON array, all when it is empty, $4: their workflow,
-- any when NULL, $5: at most this many.
SELECT r.id, r.run_id, r.session_id, r.workflow_id, r.workflow_version, r.fingerprint, r.context, r.status, r.created_at,
    r.updated_at, r.fence, r.lease_until, r.answers, r.cancel_requested, NULL AS outcome, r.reason
FROM (SELECT id FROM runs WHERE id < $1 ORDER BY id DESC LIMIT $2) AS page CROSS JOIN runs AS r ON r.id = page.id
WHERE ($3 = '[]' OR r.status IN (SELECT value FROM json_each($3))) AND ($4 IS NULL OR r.workflow_id = $4)
ORDER BY r.id DESC LIMIT $5;
