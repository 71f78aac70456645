SELECT id FROM checkpoints WHERE is_head = 0 AND created_at <= $1 ORDER BY created_at LIMIT $2;
