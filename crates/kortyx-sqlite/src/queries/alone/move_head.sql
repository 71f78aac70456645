-- $1: a session, $2: its checkpoint, $3: now.
UPDATE checkpoints SET is_head = 1 WHERE id = $2;
UPDATE sessions SET head = $2, updated_at = $3 WHERE id = $1;
