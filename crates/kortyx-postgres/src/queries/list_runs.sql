-- A page of runs, newest first, without what they carry. A call looks at ten thousand runs at most: by their keys, or at those of one
-- session, which only the index by session finds (the sums keep the keys' own index away).
WITH request AS MATERIALIZED (
    SELECT (p ->> 'before')::bigint AS before, p -> 'statuses' AS statuses, p ->> 'session_id' AS session_id,
        p ->> 'workflow' AS workflow, (p ->> 'limit')::bigint AS room
    FROM (SELECT $1::text AS operation, $2::text::jsonb AS p OFFSET 0) AS parsed
), looked AS MATERIALIZED (
    (SELECT o.id FROM kortyx.runs AS o
    WHERE (SELECT session_id FROM request) IS NULL AND o.id < (SELECT before FROM request)
    ORDER BY o.id DESC LIMIT 10000)
    UNION ALL
    (SELECT o.id FROM kortyx.runs AS o
    WHERE o.session_id = (SELECT session_id FROM request) AND o.id + 0 < (SELECT before FROM request)
    ORDER BY o.id + 0 DESC LIMIT 10000)
), page AS MATERIALIZED (
    SELECT o.id FROM request CROSS JOIN looked JOIN kortyx.runs AS o ON o.id = looked.id
    WHERE (request.statuses = '[]' OR request.statuses ? o.status)
        AND (request.workflow IS NULL OR o.workflow_id = request.workflow)
    ORDER BY o.id DESC LIMIT (SELECT room + 1 FROM request)
), shown AS MATERIALIZED (
    SELECT id FROM page ORDER BY id DESC LIMIT (SELECT room FROM request)
)
SELECT tag, data, p1, p2, p3 FROM (
    SELECT NULL::bigint AS place, 'head' AS tag, json_build_object('edge', CASE
        WHEN (SELECT count(*) FROM page) > (SELECT room FROM request) THEN (SELECT min(id) FROM shown)
        WHEN (SELECT count(*) FROM looked) = 10000 THEN (SELECT min(id) FROM looked) END)::text AS data,
        NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3
    UNION ALL
    SELECT o.id, 'run', kortyx.run_v1(o, NULL), NULL, NULL, NULL FROM shown JOIN kortyx.runs AS o ON o.id = shown.id
) AS told ORDER BY place DESC NULLS FIRST
