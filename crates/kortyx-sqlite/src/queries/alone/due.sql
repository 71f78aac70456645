SELECT id, run FROM interrupts WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2;
