-- A page of runs, newest first, without what they carry. A call looks at ten thousand runs at most, and at no more than it gives where
-- any is wanted: by their keys, or at those of one session, which only the index by session finds (the sums keep the keys' own index away).
-- Runs are read one by one: a join may walk a whole index, since nothing tells how few there are.
WITH request AS MATERIALIZED (
    SELECT (p ->> 'before')::bigint AS before, p -> 'statuses' AS statuses, p ->> 'session_id' AS session_id,
        p ->> 'workflow' AS workflow, (p ->> 'limit')::bigint AS room,
        CASE WHEN p -> 'statuses' = '[]' AND p ->> 'workflow' IS NULL THEN (p ->> 'limit')::bigint + 1 ELSE 10000 END AS most
    FROM (SELECT $1::text AS operation, $2::text::jsonb AS p OFFSET 0) AS parsed
), looked AS MATERIALIZED (
    (SELECT o.id, o.status, o.workflow_id FROM kortyx.runs AS o
    WHERE (SELECT session_id FROM request) IS NULL AND o.id < (SELECT before FROM request)
    ORDER BY o.id DESC LIMIT (SELECT most FROM request))
    UNION ALL
    (SELECT o.id, o.status, o.workflow_id FROM kortyx.runs AS o
    WHERE o.session_id = (SELECT session_id FROM request) AND o.id + 0 < (SELECT before FROM request)
    ORDER BY o.id + 0 DESC LIMIT (SELECT most FROM request))
), page AS MATERIALIZED (
    SELECT looked.id FROM request CROSS JOIN looked
    WHERE (request.statuses = '[]' OR request.statuses ? looked.status)
        AND (request.workflow IS NULL OR looked.workflow_id = request.workflow)
    ORDER BY looked.id DESC LIMIT (SELECT room + 1 FROM request)
), shown AS MATERIALIZED (
    SELECT id FROM page ORDER BY id DESC LIMIT (SELECT room FROM request)
)
SELECT tag, data, p1, p2, p3 FROM (
    SELECT NULL::bigint AS place, 'head' AS tag, json_build_object('edge', CASE
        WHEN (SELECT count(*) FROM page) > (SELECT room FROM request) THEN (SELECT min(id) FROM shown)
        WHEN (SELECT count(*) FROM looked) = (SELECT most FROM request) THEN (SELECT min(id) FROM looked) END)::text AS data,
        NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3
    UNION ALL
    SELECT shown.id, 'run', (SELECT kortyx.run_v1(o, NULL) FROM kortyx.runs AS o WHERE o.id = shown.id), NULL, NULL, NULL FROM shown
) AS told ORDER BY place DESC NULLS FIRST
