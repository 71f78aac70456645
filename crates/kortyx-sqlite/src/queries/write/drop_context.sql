DELETE FROM pending_context WHERE key = ? AND value = ? AND created_at = ? AND interrupt = ?;
