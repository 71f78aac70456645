INSERT INTO sessions (id, session_id, head, checkpoints, updated_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE
SET head = excluded.head, checkpoints = excluded.checkpoints, updated_at = excluded.updated_at;
