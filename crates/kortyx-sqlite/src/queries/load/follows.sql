-- $10: ids of checkpoints that new runs follow, each with its session's and its turn. Those that were taken back.
SELECT 'abandoned' AS tag, wanted.value ->> 0 AS checkpoint_id
FROM json_each($10) AS wanted
WHERE NOT EXISTS (
        SELECT 1 FROM checkpoints AS c CROSS JOIN sessions AS s ON s.id = c.session
        WHERE c.checkpoint_id = wanted.value ->> 0 AND s.session_id = wanted.value ->> 1
    )
    AND EXISTS (
        SELECT 1 FROM sessions AS s CROSS JOIN checkpoints AS c ON c.session = s.id
        WHERE s.session_id = wanted.value ->> 1 AND c.turn_index <= wanted.value ->> 2
    );
