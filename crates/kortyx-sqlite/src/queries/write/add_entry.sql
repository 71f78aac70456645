INSERT INTO entries (run, body) VALUES (?, ?);
