-- A page of sessions, newest first, and one more. Heads are read one by one: a join may walk a whole index, since nothing tells how
-- few there are.
WITH request AS MATERIALIZED (
    SELECT (p ->> 'before')::bigint AS before, (p ->> 'limit')::bigint AS room
    FROM (SELECT $1::text AS operation, $2::text::jsonb AS p OFFSET 0) AS parsed
), page AS MATERIALIZED (
    SELECT s.id, s.session_id, s.head FROM kortyx.sessions AS s
    WHERE s.id < (SELECT before FROM request) AND s.head IS NOT NULL
    ORDER BY s.id DESC LIMIT (SELECT room + 1 FROM request)
)
SELECT 'session' AS tag, json_build_object('key', page.id, 'session_id', page.session_id, 'head', c.checkpoint_id,
    'turn_index', c.turn_index, 'head_at', c.created_at, 'active_runs', (
        SELECT count(*) FROM kortyx.runs AS o
        WHERE o.session_id = page.session_id AND o.status IN ('running', 'suspended', 'parked')))::text AS data,
    NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3
FROM page CROSS JOIN LATERAL (
    SELECT o.checkpoint_id, o.turn_index, o.created_at FROM kortyx.checkpoints AS o WHERE o.id = page.head OFFSET 0
) AS c
ORDER BY page.id DESC
