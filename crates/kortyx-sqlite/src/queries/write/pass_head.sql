UPDATE checkpoints SET is_head = 0 WHERE id = ?;
