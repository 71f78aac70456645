INSERT INTO snapshots (run, body) VALUES (?, ?);
