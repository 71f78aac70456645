-- Counts everything, so it looks at everything: at entries of indexes where it can.
WITH request AS MATERIALIZED (
    SELECT kortyx.now_v1((p ->> 'shift')::bigint) AS now
    FROM (SELECT $1::text AS operation, $2::text::jsonb AS p OFFSET 0) AS parsed
)
SELECT 'head' AS tag, json_build_object('counts', json_build_object(
    'runs', (SELECT coalesce(json_object_agg(status, number), '{}')
        FROM (SELECT o.status, count(*) AS number FROM kortyx.runs AS o GROUP BY o.status) AS counted),
    'questions', (SELECT count(*) FROM kortyx.interrupts AS i
        WHERE i.status = 'pending' AND i.expires_at > (SELECT now FROM request)),
    'sessions', (SELECT count(*) FROM kortyx.sessions AS s WHERE s.head IS NOT NULL),
    'checkpoints', (SELECT count(*) FROM kortyx.checkpoints AS c WHERE c.abandoned_at IS NULL)))::text AS data,
    NULL::bytea AS p1, NULL::bytea AS p2, NULL::bytea AS p3
