-- $3: ids of runs.
SELECT 'run' AS tag, r.*, NULL AS snapshot,
    EXISTS (SELECT 1 FROM interrupts AS i WHERE i.run = r.id AND i.status = 'pending') AS has_pending,
    EXISTS (SELECT 1 FROM entries AS e WHERE e.run = r.id) AS has_entries,
    EXISTS (SELECT 1 FROM responses AS p WHERE p.run = r.id) AS has_response
FROM runs AS r
WHERE r.run_id IN (SELECT value FROM json_each($3));
