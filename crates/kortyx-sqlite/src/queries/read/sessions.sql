-- A page of sessions, newest first. $1: only those before this one, $2: at most this many.
SELECT s.id, s.session_id, c.checkpoint_id, c.turn_index, c.created_at, (
    SELECT count(*) FROM runs AS r WHERE r.session_id = s.session_id AND r.status IN ('running', 'suspended', 'parked')
) AS active_runs
FROM (SELECT id FROM sessions WHERE id < $1 AND head IS NOT NULL ORDER BY id DESC LIMIT $2) AS page
    CROSS JOIN sessions AS s ON s.id = page.id CROSS JOIN checkpoints AS c ON c.id = s.head
ORDER BY s.id DESC;
