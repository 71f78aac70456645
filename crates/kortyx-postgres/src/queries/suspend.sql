-- The plain case of suspending, in one statement: a new run asks its first question, in time and without a checkpoint.
-- Everything else, and a second attempt, is the function's. See `functions/driving.sql`.
WITH plain AS MATERIALIZED (
    SELECT p, p -> 'run' AS run, p -> 'pin' AS pin, p -> 'publish' -> 0 AS q, kortyx.now_v1((p ->> 'shift')::bigint) AS now,
        pg_advisory_xact_lock(uuid_hash_extended($2::text::uuid, 0))
    FROM (SELECT $4::text::jsonb AS p OFFSET 0) AS request
    WHERE NOT $3 AND p -> 'run' <> 'null' AND p -> 'checkpoint' = 'null' AND jsonb_array_length(p -> 'publish') = 1
        AND NOT p -> 'publish' @> '[{"ttl": 0}]'
), run AS (
    INSERT INTO kortyx.runs (
        run_id, session_id, pin, workflow_id, workflow_version, fingerprint, context, pairs, status, created_at,
        updated_at, fence, lease_until, answers, absorbed, has_entries, cancel_requested, snapshot, revision
    )
    SELECT run ->> 'run_id', run ->> 'session_id', (pin ->> 'digest')::uuid, pin ->> 'id', pin ->> 'version',
        pin ->> 'fingerprint', run -> 'context', (run ->> 'pairs')::uuid[], 'suspended', now, now, 0, 0, 0, 0, FALSE, FALSE, $5[(p ->> 'snapshot')::integer], decode(p ->> 'revision', 'hex')
    FROM plain
    RETURNING id, session_id, context, pairs, created_at
), question AS (
    INSERT INTO kortyx.interrupts (
        request_id, run, session_id, token, ask, workflow, node, question, created_at, expires_at, status,
        default_answer, optional_cancel, after_response
    )
    SELECT q ->> 'request_id', run.id, run.session_id, q ->> 'token', q ->> 'ask', q ->> 'workflow', q ->> 'node',
        $5[(q ->> 'question')::integer], now, kortyx.later_v1(now, (q ->> 'ttl')::bigint), 'pending',
        $5[(q ->> 'default')::integer], (q ->> 'optional_cancel')::boolean, (q ->> 'after_response')::boolean
    FROM plain, run
    RETURNING id
), listed AS (
    INSERT INTO kortyx.pending_context (pair, created_at, interrupt)
    SELECT pair, run.created_at, question.id FROM run, unnest(run.pairs) AS pair, question
), kept AS (
    INSERT INTO kortyx.transitions (id, at, reply)
    SELECT $2::text::uuid, created_at, jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', TRUE, 'kind', 'saved', 'at', created_at, 'session_id', session_id, 'context', context)))
    FROM run
    RETURNING reply
)
SELECT 'head' AS tag, reply -> 0 ->> 2 AS data, NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3 FROM kept
UNION ALL
SELECT tag, data, p1, p2, p3 FROM kortyx.transit_v1($1, $2::text::uuid, $3, $4::text::jsonb, $5)
WHERE NOT EXISTS (SELECT FROM plain)
