INSERT INTO chunks (run, number, body)
SELECT new.run, coalesce((SELECT max(number) FROM chunks WHERE run = new.run), 0) + 1, new.body
FROM (SELECT ? AS run, ? AS body) AS new;
