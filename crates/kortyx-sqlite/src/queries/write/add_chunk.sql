INSERT INTO chunks (run, number, body)
VALUES (?, coalesce((SELECT max(number) FROM chunks WHERE run = ?), 0) + 1, ?);
