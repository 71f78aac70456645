SELECT id FROM runs
WHERE status IN ('completed', 'failed', 'cancelled', 'expired') AND updated_at <= $1
ORDER BY updated_at LIMIT $2;
