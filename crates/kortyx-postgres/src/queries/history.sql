-- All that is kept of a run but what it said: the run, its snapshot, its entries and its questions, each in order.
WITH request AS MATERIALIZED (
    SELECT p ->> 'id' AS id, kortyx.now_v1((p ->> 'shift')::bigint) AS now
    FROM (SELECT $1::text AS operation, $2::text::jsonb AS p OFFSET 0) AS parsed
)
SELECT tag, data, p1, p2, p3 FROM (
    SELECT 1 AS kind, 0::bigint AS at, 0::bigint AS place, 'run' AS tag, kortyx.run_v1(o, NULL) AS data, o.outcome AS p1,
        o.response AS p2, NULL::bytea AS p3
    FROM request JOIN kortyx.runs AS o ON o.run_id = request.id
    UNION ALL
    SELECT 2, 0, 0, 'snapshot', json_build_object('run_id', o.run_id)::text, o.snapshot, NULL, NULL
    FROM request JOIN kortyx.runs AS o ON o.run_id = request.id WHERE o.snapshot IS NOT NULL
    UNION ALL
    SELECT 3, 0, e.id, 'entry', NULL, e.body, NULL, NULL
    FROM request JOIN kortyx.runs AS o ON o.run_id = request.id JOIN kortyx.entries AS e ON e.run = o.id
    UNION ALL
    SELECT 4, i.created_at, i.id, 'question', kortyx.question_v1(i, o, kortyx.seen_v1(i, request.now)), i.question,
        i.default_answer, i.answer
    FROM request JOIN kortyx.runs AS o ON o.run_id = request.id JOIN kortyx.interrupts AS i ON i.run = o.id
) AS told ORDER BY kind, at, place
