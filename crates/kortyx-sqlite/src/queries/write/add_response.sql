INSERT INTO responses (run, body) VALUES (?, ?);
