-- $9: ids of sessions, $10: ids of runs whose sessions get a checkpoint, $11: ids of the checkpoints.
SELECT 'session' AS tag, s.id, s.session_id, s.checkpoints, s.head, c.checkpoint_id, c.turn_index
FROM sessions AS s LEFT JOIN checkpoints AS c ON c.id = s.head
WHERE s.session_id IN (SELECT value FROM json_each($9));
SELECT 'session' AS tag, s.id, s.session_id, s.checkpoints, s.head, c.checkpoint_id, c.turn_index
FROM sessions AS s LEFT JOIN checkpoints AS c ON c.id = s.head
WHERE s.session_id IN (SELECT session_id FROM runs WHERE run_id IN (SELECT value FROM json_each($10)));
SELECT 'checkpoint' AS tag, checkpoint_id FROM checkpoints
WHERE checkpoint_id IN (SELECT value FROM json_each($11));
