-- Checkpoints of sessions without a change since $1 and without a run that is not terminal.
SELECT c.id
FROM sessions AS s
    CROSS JOIN checkpoints AS c ON c.session = s.id
WHERE s.updated_at <= $1
    AND NOT EXISTS (
        SELECT 1 FROM runs AS r
        WHERE r.session_id = s.session_id AND r.status IN ('running', 'suspended', 'parked')
    )
ORDER BY s.updated_at LIMIT $2;
