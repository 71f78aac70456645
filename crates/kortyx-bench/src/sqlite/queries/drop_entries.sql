DELETE FROM entries WHERE run = ?;
