-- The plain case of answering, in one statement: one answer by token to a question in time, of a run that only waits, by
-- somebody who drives it on. Everything else, a second attempt, and a run that changed since it was read is the function's.
-- See `functions/answering.sql`. Who changes a run's questions changes its row too.
WITH plain AS MATERIALIZED (
    SELECT a, request.driver, now, o.id AS run, o.xmin AS version, i.id AS question,
        pg_advisory_xact_lock(uuid_hash_extended($2::text::uuid, 0))
    FROM (
        SELECT p -> 'answers' -> 0 AS a, p -> 'driver' AS driver, kortyx.now_v1((p ->> 'shift')::bigint) AS now
        FROM (SELECT $4::text::jsonb AS p OFFSET 0) AS parsed
        WHERE NOT $3 AND jsonb_array_length(p -> 'answers') = 1 AND NOT (p ->> 'detached')::boolean
        OFFSET 0
    ) AS request
        JOIN kortyx.interrupts AS i ON i.request_id = a ->> 'request_id'
        JOIN kortyx.runs AS o ON o.id = i.run
    WHERE NOT (a ->> 'cancel')::boolean AND request.driver <> 'null' AND i.status = 'pending' AND i.expires_at > now
        AND sha256(convert_to(i.token, 'UTF8')) = decode(a ->> 'token', 'hex')
        AND coalesce(a ->> 'run_id' = o.run_id, TRUE) AND coalesce(a ->> 'session_id' = o.session_id, TRUE)
        AND o.status = 'suspended' AND NOT o.cancel_requested AND o.answers = o.absorbed AND NOT o.has_entries
), run AS (
    UPDATE kortyx.runs AS o
    SET status = 'running', fence = o.fence + 1, lease_until = kortyx.later_v1(now, (plain.driver ->> 'ttl')::bigint),
        driver = plain.driver ->> 'id', answers = o.answers + 1, updated_at = now
    FROM plain WHERE o.id = plain.run AND o.xmin = plain.version
    RETURNING o AS r, a, question
), answered AS (
    UPDATE kortyx.interrupts AS i
    SET status = 'answered', answer = $5[(a ->> 'answer')::integer], seq = (r).answers, answered_at = (r).updated_at,
        actor = a ->> 'actor'
    FROM run WHERE i.id = run.question
    RETURNING i AS q, (r).id, (r).run_id, (r).fence, (r).lease_until, (r).pairs
), unlisted AS (
    DELETE FROM kortyx.pending_context AS c USING answered
    WHERE c.pair = ANY (answered.pairs) AND c.created_at = (answered.q).created_at AND c.interrupt = (answered.q).id
), kept AS (
    INSERT INTO kortyx.transitions (id, at, reply)
    SELECT $2::text::uuid, (q).answered_at, jsonb_build_array(
        jsonb_build_array('head', NULL, jsonb_build_object(
            'w', TRUE, 'kind', 'accepted', 'drive', 'granted',
            'receipts', jsonb_build_array(kortyx.receipt_v1(q, run_id)))),
        jsonb_build_array('claim', id, jsonb_build_object('fence', fence, 'until', lease_until)))
    FROM answered
    RETURNING reply
)
SELECT 'head' AS tag, reply -> 0 ->> 2 AS data, NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3 FROM kept
UNION ALL
SELECT 'claim', kortyx.run_v1(r, NULL), NULL, (r).snapshot, NULL FROM run
UNION ALL
SELECT 'answer', kortyx.told_v1(q), (q).answer, NULL, NULL FROM answered
UNION ALL
SELECT tag, data, p1, p2, p3 FROM kortyx.transit_v1($1, $2::text::uuid, $3, $4::text::jsonb, $5)
WHERE NOT EXISTS (SELECT FROM run)
