UPDATE interrupts SET status = ?, answer = ?, seq = ?, answered_at = ?, actor = ? WHERE id = ?;
