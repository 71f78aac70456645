-- $1: keys of runs.
SELECT 'run' AS tag, *, NULL AS snapshot, FALSE AS has_pending,
    EXISTS (SELECT 1 FROM entries AS e WHERE e.run = runs.id) AS has_entries,
    EXISTS (SELECT 1 FROM responses AS p WHERE p.run = runs.id) AS has_response
FROM runs WHERE id IN (SELECT value FROM json_each($1));
SELECT 'pending' AS tag, * FROM interrupts
WHERE run IN (SELECT value FROM json_each($1)) AND status = 'pending'
ORDER BY created_at, id;
