-- The oldest checkpoints of sessions with more than $1.
SELECT c.id
FROM sessions AS s
    CROSS JOIN checkpoints AS c ON c.session = s.id
        AND c.turn_index < (
            SELECT n.turn_index FROM checkpoints AS n
            WHERE n.session = s.id ORDER BY n.turn_index DESC LIMIT 1 OFFSET $1 - 1
        )
WHERE s.checkpoints > $1
LIMIT $2;
