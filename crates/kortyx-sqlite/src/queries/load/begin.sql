BEGIN IMMEDIATE;
SELECT 'last' AS tag,
    (SELECT coalesce(max(id), 0) FROM runs) AS run,
    (SELECT coalesce(max(id), 0) FROM interrupts) AS question,
    (SELECT coalesce(max(id), 0) FROM sessions) AS session,
    (SELECT coalesce(max(id), 0) FROM checkpoints) AS checkpoint;
