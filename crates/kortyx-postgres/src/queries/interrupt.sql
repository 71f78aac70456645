-- Reading one question, which precedes every answer; the same as the function does. See `functions/reading.sql`.
WITH request AS MATERIALIZED (
    SELECT p ->> 'id' AS id, kortyx.now_v1((p ->> 'shift')::bigint) AS now
    FROM (SELECT $2::text::jsonb AS p OFFSET 0) AS parsed WHERE $1 = 'interrupt'
)
SELECT 'head' AS tag, json_build_object('now', now)::text AS data, NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3
FROM request
UNION ALL
SELECT 'question', kortyx.question_v1(i, o, kortyx.seen_v1(i, now)), i.question, i.default_answer, i.answer
FROM request JOIN kortyx.interrupts AS i ON i.request_id = request.id JOIN kortyx.runs AS o ON o.id = i.run
