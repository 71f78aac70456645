DELETE FROM snapshots WHERE run = ?;
