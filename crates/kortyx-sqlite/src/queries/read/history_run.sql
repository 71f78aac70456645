SELECT r.*, 'run' AS tag, p.body AS response, s.body AS snapshot
FROM runs AS r LEFT JOIN responses AS p ON p.run = r.id LEFT JOIN snapshots AS s ON s.run = r.id WHERE r.run_id = $1;
