-- The plain case of finishing, in one statement: nothing is open, no entry is left and no checkpoint is taken. Everything
-- else, a second attempt, and a run that changed since it was read is the function's. See `functions/driving.sql`.
WITH plain AS MATERIALIZED (
    SELECT p, p -> 'pin' AS pin, o.id, o.xmin AS version, kortyx.now_v1((p ->> 'shift')::bigint) AS now,
        pg_advisory_xact_lock(uuid_hash_extended($2::text::uuid, 0))
    FROM (SELECT $4::text::jsonb AS p OFFSET 0) AS request
        JOIN kortyx.runs AS o ON o.run_id = p -> 'lease' ->> 'run_id'
    WHERE NOT $3 AND p -> 'run' = 'null' AND p -> 'checkpoint' = 'null' AND o.status = 'running'
        AND o.fence = (p -> 'lease' ->> 'fence')::bigint AND o.lease_until <> 0
        AND o.answers <= (p ->> 'answers_seen')::bigint AND NOT o.has_entries
        AND NOT EXISTS (SELECT FROM kortyx.interrupts AS i WHERE i.run = o.id AND i.status = 'pending')
), run AS (
    UPDATE kortyx.runs AS o
    SET status = p ->> 'status', pin = (plain.pin ->> 'digest')::uuid, workflow_id = plain.pin ->> 'id',
        workflow_version = plain.pin ->> 'version', fingerprint = plain.pin ->> 'fingerprint', lease_until = 0,
        driver = NULL, updated_at = now, snapshot = NULL, revision = NULL, outcome = $5[(p ->> 'outcome')::integer],
        reason = coalesce(p ->> 'reason', o.reason)
    FROM plain WHERE o.id = plain.id AND o.xmin = plain.version
    RETURNING o.updated_at
), kept AS (
    INSERT INTO kortyx.transitions (id, at, reply)
    SELECT $2::text::uuid, updated_at, '[["head", null, {"w": true, "kind": "done"}]]' FROM run
    RETURNING reply
)
SELECT 'head' AS tag, reply -> 0 ->> 2 AS data, NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3 FROM kept
UNION ALL
SELECT tag, data, p1, p2, p3 FROM kortyx.transit_v1($1, $2::text::uuid, $3, $4::text::jsonb, $5)
WHERE NOT EXISTS (SELECT FROM run)
