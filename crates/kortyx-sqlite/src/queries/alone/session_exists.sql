-- A session exists while it has checkpoints or runs.
SELECT 1 AS found FROM sessions WHERE session_id = $1 UNION ALL SELECT 1 FROM runs WHERE session_id = $1 LIMIT 1;
