SELECT id FROM runs WHERE status = 'running' AND cancel_requested = 1 AND lease_until <= $1
ORDER BY lease_until LIMIT $2;
