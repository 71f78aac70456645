-- $7: ids of sessions, $8: ids of runs whose sessions get a checkpoint, $9: ids of the checkpoints.
SELECT 'sessions' AS tag,
    (SELECT coalesce(max(id), 0) FROM sessions) AS session,
    (SELECT coalesce(max(id), 0) FROM checkpoints) AS checkpoint,
    (
        SELECT json_group_array(checkpoint_id) FROM checkpoints
        WHERE checkpoint_id IN (SELECT value FROM json_each($9))
    ) AS checkpoints;
SELECT 'session' AS tag, s.id, s.session_id, s.checkpoints, s.head, c.checkpoint_id, c.turn_index
FROM sessions AS s LEFT JOIN checkpoints AS c ON c.id = s.head
WHERE s.session_id IN (
    SELECT value FROM json_each($7)
    UNION ALL SELECT session_id FROM runs WHERE run_id IN (SELECT value FROM json_each($8))
);
