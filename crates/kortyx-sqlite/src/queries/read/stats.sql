-- $1: now. It counts everything, so it looks at everything.
SELECT 'run' AS tag, status, count(*) AS number FROM runs GROUP BY status
UNION ALL SELECT 'question', NULL, count(*) FROM interrupts WHERE status = 'pending' AND expires_at > $1
UNION ALL SELECT 'session', NULL, count(*) FROM sessions WHERE head IS NOT NULL
UNION ALL SELECT 'checkpoint', NULL, count(*) FROM checkpoints;
